import { expect, it } from 'vitest';
import { user } from '../../store/marketplace/records.fixture.ts';
import { openBooks } from '../ledger/ledger.fixture.ts';
import { OperatorError } from '../operator-error.ts';
import { Authenticator } from './authenticate.ts';
import { createKey, revokeKey } from './keys.ts';

const EMAIL = 'usr-1@example.com';
const HOUR_MS = 3_600_000;
/** As long as a revoked key may live. */
const BELIEVED_MS = 2_000;

async function openKeys() {
  const books = await openBooks();
  const authenticator = new Authenticator(books.deps);
  const ask = (key: string) => authenticator.authenticate(`Bearer ${key}`);
  return { ...books, authenticator, ask };
}

const unauthorized = { code: 'UNAUTHORIZED', status: 401 };

it('opens the API to its user, and is kept as a digest alone', async () => {
  const { deps, ask, store } = await openKeys();
  const { key, record } = await createKey(deps, EMAIL, { label: 'laptop' });
  expect(await ask(key)).toEqual({ userId: 'usr-1' });
  expect(JSON.stringify(await store.read.keys.byId(record.id))).not.toContain(key);
});

it.each([
  ['no credential', undefined],
  ['another scheme', 'Basic dXNlcjpwYXNz'],
  ['no token', 'Bearer '],
  ['two tokens', 'Bearer a b'],
  ['an unknown key', 'Bearer berth_unknown'],
])('refuses %s', async (_, authorization) => {
  const { authenticator } = await openKeys();
  await expect(authenticator.authenticate(authorization)).rejects.toMatchObject(unauthorized);
});

it('opens nothing from its expiry on, also where it was used just before', async () => {
  const { deps, ask, clock } = await openKeys();
  const { key } = await createKey(deps, EMAIL, { expiresAt: clock.now() + HOUR_MS });
  await clock.advance(HOUR_MS - 1);
  expect(await ask(key)).toEqual({ userId: 'usr-1' });
  await clock.advance(1);
  await expect(ask(key)).rejects.toMatchObject(unauthorized);
  await expect(createKey(deps, EMAIL, { expiresAt: clock.now() })).rejects.toThrow(OperatorError);
});

it('opens nothing once it is revoked, everywhere within two seconds; another key of the user does', async () => {
  const { deps, ask, clock } = await openKeys();
  const [old, fresh] = [await createKey(deps, EMAIL), await createKey(deps, EMAIL)];
  expect(await ask(old.key)).toEqual({ userId: 'usr-1' });
  const revokedAt = await revokeKey(deps, old.record.id);
  await clock.advance(BELIEVED_MS);
  await expect(ask(old.key)).rejects.toMatchObject(unauthorized);
  expect(await ask(fresh.key)).toEqual({ userId: 'usr-1' });
  expect(await revokeKey(deps, old.record.id)).toBe(revokedAt);
});

it('is made only for who is on the whitelist', async () => {
  const { deps, store } = await openKeys();
  await store.transact((tx) => tx.users.update(user({ mayMakeKeys: false })));
  await expect(createKey(deps, EMAIL)).rejects.toThrow(/may not have keys/);
  await store.transact((tx) => tx.users.update(user({ mayMakeKeys: true })));
  await expect(createKey(deps, EMAIL)).resolves.toMatchObject({ key: expect.stringMatching(/^berth_/) });
});

it('tells when it was used last', async () => {
  const { deps, ask, authenticator, store, clock } = await openKeys();
  const { key, record } = await createKey(deps, EMAIL);
  await clock.advance(HOUR_MS);
  await ask(key);
  await authenticator.recordUses();
  expect((await store.read.keys.byId(record.id))?.lastUsedAt).toBe(clock.now());
});
