import { expect, it } from 'vitest';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { digestSecret } from '../../keys/api-key.ts';
import { systemRandom } from '../../runtime/system.ts';
import { createAccount, createKey, revokeKey, setPassword } from './accounts.ts';
import type { Authenticator } from './authenticate.ts';
import { issueToken } from './issue-token.ts';
import type { PasswordChecks } from './password-checks.ts';

async function openStore() {
  const store = await openTestStore();
  return { store, clock: new VirtualClock(), random: systemRandom };
}

it('makes an account again with the id that it had, and refuses an id that is none or is taken', async () => {
  const deps = await openStore();
  const { store } = deps;
  const id = `acct-${'0a'.repeat(10)}`;
  expect(await createAccount(deps, 'late', id)).toMatchObject({ id, name: 'late' });
  expect(await store.read.credentials.accountById(id)).toMatchObject({ name: 'late' });
  await expect(createAccount(deps, 'other', id)).rejects.toThrow(/id acct-.* already/);
  for (const wrong of ['', 'acct-1', `${id}0`, id.toUpperCase(), `inst-${'0'.repeat(20)}`])
    await expect(createAccount(deps, 'other', wrong)).rejects.toThrow(/not a valid account id/);
  expect((await createAccount(deps, 'other')).id).toMatch(/^acct-[0-9a-f]{20}$/);
});

it('ends the tokens of a revoked key and of an old password, which no longer count for the account', async () => {
  const deps = await openStore();
  const { store, clock } = deps;
  const { id: accountId } = await createAccount(deps, 'acme');
  const [revoked, kept] = [await createKey(deps, 'acme'), await createKey(deps, 'acme')];
  await setPassword(deps, 'acme', 'the first password');
  const { passwordHash } = (await store.read.credentials.accountById(accountId)) ?? {};
  const parents = [revoked.record.digest, kept.record.digest, digestSecret(passwordHash ?? '')];
  for (const [index, parentDigest] of parents.entries())
    await store.transact((tx) =>
      tx.credentials.insertToken({
        accountId,
        parentDigest,
        digest: Buffer.of(index),
        createdAt: clock.now(),
        expiresAt: clock.now() + 1,
      }),
    );
  const live = () => store.transact((tx) => tx.accountUse.liveTokens(accountId, clock.now()));
  expect(await live()).toBe(3);
  await revokeKey(deps, revoked.record.id);
  expect(await live()).toBe(2);
  await setPassword(deps, 'acme', 'the second password');
  expect(await live()).toBe(1);
  expect(await store.read.credentials.tokenByDigest(Buffer.of(1))).not.toBeNull();
});

it.each([
  ['disabled', false],
  ['deleted', true],
])('issues no token to an account that is %s while its password is checked', async (_what, isDeleted) => {
  const deps = await openStore();
  const { store, clock } = deps;
  const { id } = await createAccount(deps, 'acme');
  await setPassword(deps, 'acme', 'the password');
  const close = () =>
    store.transact(async ({ credentials }) => {
      await credentials.endAccess(id, clock.now());
      if (isDeleted) await credentials.deleteAccount(id);
      return true;
    });
  const quotas = { instances: undefined, volumes: undefined, storageGb: undefined, liveTokens: 10 };
  const issuing = issueToken(
    {
      ...deps,
      quotas,
      authenticator: {} as Authenticator,
      passwordChecks: { isRight: close } as unknown as PasswordChecks,
    },
    { username: 'acme', password: 'the password' },
    {
      address: '192.0.2.1',
      signal: new AbortController().signal,
      admit: () => () => undefined,
      name: () => undefined,
    },
  );
  await expect(issuing).rejects.toMatchObject({ code: 'unauthorized' });
  expect(await store.transact(({ accountUse }) => accountUse.liveTokens(id, clock.now()))).toBe(0);
});
