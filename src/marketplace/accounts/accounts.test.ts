import { beforeEach, describe, expect, it } from 'vitest';
import { openTestMarketStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { systemRandom } from '../../runtime/system.ts';
import type { Store } from '../model/store.ts';
import { Authenticator } from '../teams/authenticate.ts';
import { createKey, revokeKey } from '../teams/keys.ts';
import { addUser, changeUser } from '../teams/users.ts';

const DAY_MS = 86_400_000;
const email = 'ann@example.com';

let store: Store;
let clock: VirtualClock;
let authenticator: Authenticator;
const deps = () => ({ store, clock, random: systemRandom });

beforeEach(async () => {
  clock = new VirtualClock();
  store = await openTestMarketStore();
  authenticator = new Authenticator({ store, clock });
});

const whose = (key: string) => authenticator.authenticate(`Bearer ${key}`);
const refused = { code: 'UNAUTHORIZED', message: 'The API key is not valid.' };

describe('an API key (M: Authentication, 1)', () => {
  it('is made only for a user who may have keys, and is stored as its digest [api-key-stored-as-digest]', async () => {
    const { id } = await addUser(deps(), { email });
    await expect(createKey(deps(), email)).rejects.toThrow('may not have keys');
    await changeUser(deps(), email, { mayMakeKeys: true });
    const { key, record } = await createKey(deps(), email, { label: 'laptop' });
    expect(await whose(key)).toEqual({ userId: id, keyId: record.id });
    expect(JSON.stringify(await store.read.keys.ofUser(id))).not.toContain(key);
    expect(record.label).toBe('laptop');
    await expect(whose(`${key}x`)).rejects.toMatchObject(refused);
    await expect(authenticator.authenticate(undefined)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    await expect(authenticator.authenticate(`Basic ${key}`)).rejects.toMatchObject(refused);
  });

  it('ends at its expiry to the millisecond, also while it is remembered [api-key-expires]', async () => {
    await addUser(deps(), { email, mayMakeKeys: true });
    await expect(createKey(deps(), email, { expiresAt: clock.now() })).rejects.toThrow(
      'must be in the future',
    );
    const { key } = await createKey(deps(), email, { expiresAt: clock.now() + DAY_MS });
    await clock.advance(DAY_MS - 1);
    expect(await whose(key)).toBeDefined();
    await clock.advance(1);
    await expect(whose(key)).rejects.toMatchObject(refused);
  });

  it('stops working at once in the process that revokes it, within a second in others, and keeps the first revocation time [api-key-revoked-within-two-seconds]', async () => {
    await addUser(deps(), { email, mayMakeKeys: true });
    const { key, record } = await createKey(deps(), email);
    const other = new Authenticator({ clock, store: { ...store, watch: () => () => undefined } });
    for (const process of [authenticator, other]) await process.authenticate(`Bearer ${key}`);
    const revokedAt = await revokeKey(deps(), record.id);
    await expect(whose(key)).rejects.toMatchObject(refused);
    await clock.advance(1_000);
    await expect(other.authenticate(`Bearer ${key}`)).rejects.toMatchObject(refused);
    expect(await revokeKey(deps(), record.id)).toBe(revokedAt);
  });

  it('shows when it was last used', async () => {
    const { id } = await addUser(deps(), { email, mayMakeKeys: true });
    const { key } = await createKey(deps(), email);
    await clock.advance(60_000);
    await whose(key);
    await authenticator.recordUses();
    expect(await store.read.keys.ofUser(id)).toMatchObject([{ lastUsedAt: clock.now() }]);
  });
});

it.each([
  [{ createLimit: -2 }, 'A create limit must be a whole number'],
  [{ createLimit: 1.5 }, 'A create limit must be a whole number'],
  [{ minimumRuntimeMinutes: -1 }, 'A minimum runtime must be a number'],
])('refuses the settings %o for a new and for an existing user', async (changes, message) => {
  await expect(addUser(deps(), { email, ...changes })).rejects.toThrow(message);
  await addUser(deps(), { email });
  await expect(changeUser(deps(), email, changes)).rejects.toThrow(message);
});
