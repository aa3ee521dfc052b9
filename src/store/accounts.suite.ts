import { beforeEach, describe, expect, it } from 'vitest';
import { accountId, instance, now, volume } from '../../test/support/rows/orchestrator-rows.ts';
import type { InstanceRecord } from '../orchestrator/model/records.ts';
import type { ChangePosition, Store, Transaction } from '../orchestrator/model/store.ts';
import { nextTurn } from '../ports/clock.ts';

/** Accounts: credentials, their end, the changes and the requests of each. */
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

  describe('changes', () => {
    const page = (after: ChangePosition | null, limit = 100) =>
      store.read.changes.page({ accountId, after, limit });
    const end = async () => (await page(null)).next;
    /** Returns the changes as `id version`, in order, and the next position. */
    const changesAfter = async (after: ChangePosition, limit?: number) => {
      const { changes, next } = await page(after, limit);
      return { next, listed: changes.map(({ kind, id, version }) => `${kind} ${id} ${version}`) };
    };

    it('are the writes after a position, each resource once, with its version', async () => {
      await insert(instance('before'));
      const start = await end();
      expect((await changesAfter(start)).listed).toEqual([]);
      await insert(instance('a'));
      await insert(instance('b'));
      await store.transact((tx) => tx.instances.update(instance('a', { version: 2 })));
      await store.transact((tx) => tx.volumes.insert(volume('v')));
      const { listed, next } = await changesAfter(start);
      expect(listed).toEqual(['instance b 1', 'instance a 2', 'volume v 1']);
      expect((await changesAfter(next)).listed).toEqual([]);
    });

    it('include the attachments of a volume', async () => {
      await insert(instance('a'));
      await store.transact((tx) => tx.volumes.insert(volume('v')));
      const listed: string[] = [];
      let after = await end();
      for (const write of [
        (tx: Transaction) => tx.volumes.putAttachment({ volumeId: 'v', instanceId: 'a', state: 'attaching' }),
        (tx: Transaction) => tx.volumes.update(volume('v', { sizeGb: 9 })),
        (tx: Transaction) => tx.volumes.removeAttachment('v', 'a'),
      ]) {
        await store.transact(write);
        const changed = await changesAfter(after);
        listed.push(...changed.listed);
        after = changed.next;
      }
      expect(listed).toEqual(['volume v 2', 'volume v 3', 'volume v 4']);
    });

    it('are not listed for another account', async () => {
      const other = { id: 'acct-2', name: 'two', passwordHash: null, createdAt: now };
      await store.transact((tx) => tx.credentials.insertAccount(other));
      const start = await end();
      await insert(instance('a'));
      await insert(instance('b', { accountId: 'acct-2' }));
      expect((await changesAfter(start)).listed).toEqual(['instance a 1']);
      const { changes } = await store.read.changes.page({ accountId: 'acct-2', after: start, limit: 9 });
      expect(changes.map(({ id }) => id)).toEqual(['b']);
    });

    it('are listed page by page, also those of one transaction', async () => {
      const start = await end();
      const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
      await store.transact(async (tx) => {
        for (const id of ids) await tx.instances.insert(instance(id));
      });
      const listed: string[] = [];
      let after = start;
      for (let count = 2; count === 2; ) {
        const changed = await changesAfter(after, 2);
        count = changed.listed.length;
        listed.push(...changed.listed);
        after = changed.next;
      }
      expect(listed).toEqual(ids.map((id) => `instance ${id} 1`));
    });

    it('do not include a rolled-back write, but include later writes', async () => {
      const start = await end();
      let seen: Promise<{ listed: string[]; next: ChangePosition }> | undefined;
      await store
        .transact(async (tx) => {
          await tx.instances.insert(instance('a'));
          seen = changesAfter(start);
          await nextTurn();
          throw new Error('no');
        })
        .catch(() => undefined);
      expect((await seen)?.listed).toEqual([]);
      await insert(instance('b'));
      expect((await changesAfter((await seen)?.next ?? start)).listed).toEqual(['instance b 1']);
    });

    it('still follow a position after the row of the last one is pruned', async () => {
      await insert(instance('a', { status: 'DESTROYED', createOpenUntil: null }));
      const after = await end();
      const pruned = { platform: 'default', endedBefore: now + 1, limit: 9 };
      expect((await store.transact((tx) => tx.instances.prune(pruned))).ids).toEqual(['a']);
      await insert(instance('b'));
      await store.transact((tx) => tx.volumes.insert(volume('v')));
      expect((await changesAfter(after)).listed).toEqual(['instance b 1', 'volume v 1']);
    });

    it('are reported to listeners for volumes too, by account', async () => {
      const notified: string[] = [];
      store.subscribe({ volumesChanged: (accountIds) => notified.push(...accountIds) });
      await insert(instance('a'));
      await store.transact((tx) => tx.volumes.insert(volume('v')));
      await store.transact((tx) =>
        tx.volumes.putAttachment({ volumeId: 'v', instanceId: 'a', state: 'attached' }),
      );
      expect(notified).toEqual([accountId, accountId]);
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
