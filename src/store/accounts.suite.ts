import { beforeEach, describe, expect, it } from 'vitest';
import { accountId, instance, now } from '../../test/support/rows/orchestrator-rows.ts';
import type { InstanceRecord } from '../orchestrator/model/records.ts';
import type { Store } from '../orchestrator/model/store.ts';

/** Accounts: credentials, their end and the requests of each. */
export function describeAccounts(storeOf: () => Store): void {
  let store: Store;
  beforeEach(() => {
    store = storeOf();
  });
  const insert = (record: InstanceRecord) => store.transact((tx) => tx.instances.insert(record));

  describe('credentials', () => {
    it('are found by their exact digest only', async () => {
      const digest = Buffer.alloc(32, 7);
      const key = {
        id: 'key-1',
        accountId,
        digest,
        prefix: 'berth_abcd',
        lastFour: 'wxyz',
        label: null,
        createdAt: now,
        expiresAt: null,
        revokedAt: null,
        lastUsedAt: null,
      };
      await store.transact(async (tx) => {
        await tx.credentials.insertKey(key);
        await tx.credentials.insertToken({
          digest: Buffer.alloc(32, 8),
          accountId,
          parentDigest: digest,
          createdAt: now,
          expiresAt: now + 1,
        });
      });
      expect(await store.read.credentials.keyByDigest(digest)).toEqual(key);
      expect(await store.read.credentials.keyByDigest(Buffer.alloc(32, 9))).toBeNull();
      expect((await store.read.credentials.tokenByDigest(Buffer.alloc(32, 8)))?.parentDigest).toEqual(digest);
      await store.transact(async (tx) => {
        await tx.credentials.recordKeyUse('key-1', now + 1);
        await tx.credentials.revokeKey('key-1', now + 2);
        await tx.credentials.deleteTokensExpiredBefore(now + 2);
        await tx.credentials.setPasswordHash(accountId, 'hash');
      });
      expect(await store.read.credentials.listKeys(accountId)).toEqual([
        { ...key, lastUsedAt: now + 1, revokedAt: now + 2 },
      ]);
      expect(await store.read.credentials.tokenByDigest(Buffer.alloc(32, 8))).toBeNull();
      expect((await store.read.credentials.accountByName('one'))?.passwordHash).toBe('hash');
    });
  });

  describe('the end of an account', () => {
    const credential = { accountId, createdAt: now, expiresAt: null, revokedAt: null, lastUsedAt: null };
    const key = { ...credential, id: 'key-1', digest: Buffer.alloc(32, 7), prefix: 'p', lastFour: '1234' };

    it('revokes its keys, password and tokens, and no others', async () => {
      const other = { ...key, accountId: 'acct-2', id: 'key-2', digest: Buffer.alloc(32, 6), label: null };
      await store.transact(async (tx) => {
        await tx.credentials.insertAccount({
          id: 'acct-2',
          name: 'two',
          passwordHash: 'h',
          createdAt: now,
        });
        await tx.credentials.insertKey({ ...key, label: null });
        await tx.credentials.insertKey(other);
        await tx.credentials.setPasswordHash(accountId, 'hash');
        const token = { accountId, parentDigest: key.digest, createdAt: now, expiresAt: now + 1 };
        await tx.credentials.insertToken({ ...token, digest: Buffer.alloc(32, 8) });
      });
      await store.transact((tx) => tx.credentials.endAccess(accountId, now + 5));
      await store.transact((tx) => tx.credentials.endAccess(accountId, now + 9));
      const { credentials } = store.read;
      expect((await credentials.listKeys()).map(({ id, revokedAt }) => [id, revokedAt])).toEqual([
        ['key-1', now + 5],
        ['key-2', null],
      ]);
      expect((await credentials.accountById(accountId))?.passwordHash).toBeNull();
      expect((await credentials.accountById('acct-2'))?.passwordHash).toBe('h');
      expect(await credentials.tokenByDigest(Buffer.alloc(32, 8))).toBeNull();
    });

    it('closes it permanently: its keys read as revoked, and its row goes after the rows of its resources', async () => {
      const { credentials } = store.read;
      await store.transact(async (tx) => {
        await tx.credentials.insertKey({ ...key, label: null });
        await tx.instances.insert(instance('a', { status: 'DESTROYED', createOpenUntil: null }));
      });
      await store.transact((tx) => tx.credentials.deleteClosedAccounts());
      expect(await credentials.keyByDigest(key.digest)).toMatchObject({ revokedAt: null });
      for (const at of [now + 5, now + 9])
        await store.transact((tx) => tx.credentials.closeAccount(accountId, at));
      expect(await credentials.keyByDigest(key.digest)).toMatchObject({ revokedAt: now + 5 });
      await store.transact((tx) => tx.credentials.deleteClosedAccounts());
      expect(await credentials.accountByName('one')).toMatchObject({ closedAt: now + 5 });
      await store.transact((tx) =>
        tx.instances.prune({ platform: 'default', endedBefore: now + 1_000_000, limit: 10 }),
      );
      await store.transact((tx) => tx.credentials.deleteClosedAccounts());
      expect(await credentials.accountByName('one')).toBeNull();
    });

    it('deletes it with its credentials, unless a row of its resources is kept', async () => {
      await store.transact(async (tx) => {
        await tx.credentials.insertKey({ ...key, label: null });
        const made = { accountId, key: 'once', requestDigest: key.digest, resourceId: 'b', createdAt: now };
        await tx.idempotency.insert(made);
        await tx.instances.insert(instance('a', { status: 'DESTROYED', createOpenUntil: null }));
      });
      const end = () => store.transact((tx) => tx.credentials.deleteAccount(accountId));
      expect(await end()).toBe(false);
      expect(await store.read.credentials.listKeys(accountId)).toHaveLength(1);
      await store.transact((tx) =>
        tx.instances.prune({ platform: 'default', endedBefore: now + 1_000_000, limit: 10 }),
      );
      expect(await end()).toBe(true);
      expect(await store.read.credentials.accountById(accountId)).toBeNull();
      expect(await store.read.credentials.listKeys(accountId)).toEqual([]);
    });
  });

  it('keeps idempotency keys by account until they are old', async () => {
    await insert(instance('a'));
    const record = {
      accountId,
      key: 'k',
      requestDigest: Buffer.alloc(32, 1),
      resourceId: 'a',
      createdAt: now,
    };
    await store.transact((tx) => tx.idempotency.insert(record));
    await store.transact(async (tx) => {
      expect(await tx.idempotency.find(accountId, 'k')).toEqual(record);
      expect(await tx.idempotency.find('acct-2', 'k')).toBeNull();
      await tx.idempotency.deleteCreatedBefore(now + 1);
      expect(await tx.idempotency.find(accountId, 'k')).toBeNull();
    });
  });
}
