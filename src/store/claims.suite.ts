import { beforeEach, describe, expect, it } from 'vitest';
import {
  accountId,
  claim,
  dueWork,
  instance,
  now,
  volume,
} from '../../test/support/rows/orchestrator-rows.ts';
import type { InstanceRecord } from '../orchestrator/model/records.ts';
import type { Store, Transaction } from '../orchestrator/model/store.ts';

/** Claims of capacity and storage on a platform, and volumes. */
export function describeClaims(storeOf: () => Store): void {
  let store: Store;
  beforeEach(() => {
    store = storeOf();
  });
  const insert = (record: InstanceRecord) => store.transact((tx) => tx.instances.insert(record));
  const take = (tx: Transaction, instanceId: string, capacity: number) =>
    tx.claims.take({ instanceId, offerId: 'offer', region: 'here', capacity });

  describe('several platforms', () => {
    const on = (platform: string, id: string, changes: Partial<InstanceRecord> = {}) =>
      instance(id, { platform, ...changes });

    it('each have their own work: due steps, the next due time, and deadlines [work-by-platform]', async () => {
      await store.transact(async (tx) => {
        for (const record of [on('east', 'e'), on('west', 'w')]) {
          await tx.instances.insert(record);
          await tx.work.put({ ...dueWork, resourceId: record.id, deadlineAt: now + 7 });
        }
      });
      await store.transact((tx) => tx.work.extendDeadlines('east', 5));
      const claims = { ...claim, platform: 'west', leaseUntil: now + 50 };
      expect(await store.claimWork(claims)).toMatchObject([{ resourceId: 'w', deadlineAt: now + 7 }]);
      expect(await store.claimWork(claims)).toEqual([]);
      expect(await store.nextWorkAt('east')).toBe(now);
      expect(await store.nextWorkAt('west')).toBe(now + 50);
      expect(await store.nextWorkAt('north')).toBeNull();
      expect(await store.claimWork({ ...claim, platform: 'east' })).toMatchObject([
        { resourceId: 'e', deadlineAt: now + 12 },
      ]);
    });

    it('are counted separately, and so are the hosts of one [rows-by-platform]', async () => {
      const lost = { status: 'ERROR' } as const;
      await store.transact(async (tx) => {
        await tx.instances.insert(on('east', 'e1', { host: 'one' }));
        await tx.instances.insert(on('east', 'e2', { host: 'one', ...lost }));
        await tx.instances.insert(on('east', 'e3', { host: 'two', ...lost }));
        await tx.instances.insert(on('west', 'w1', lost));
        await tx.instances.insert(on('west', 'w2', { status: 'DESTROYED' }));
        for (const instanceId of ['e2', 'e3', 'w1']) await tx.losses.add({ instanceId, at: now });
      });
      const { instances, losses } = store.read;
      expect(await instances.countByPlatform()).toEqual([
        { platform: 'east', count: 3, anId: 'e1' },
        { platform: 'west', count: 1, anId: 'w1' },
      ]);
      expect(await instances.endedByPlatform()).toEqual([{ platform: 'west', count: 1 }]);
      expect(await instances.countByStatus({ platform: 'west' })).toEqual([{ status: 'ERROR', count: 1 }]);
      expect(await instances.countByStatus({ platform: 'east', host: 'two' })).toEqual([
        { status: 'ERROR', count: 1 },
      ]);
      expect(await losses.countSince(now, { platform: 'east' })).toBe(2);
      expect(await losses.countSince(now, { platform: 'east', host: 'one' })).toBe(1);
      expect(await losses.countSince(now, { platform: 'west' })).toBe(1);
    });

    it('have their tombstones deleted separately [pruned-by-platform]', async () => {
      const ended = { status: 'DESTROYED', createOpenUntil: null, updatedAt: now - 1 } as const;
      await store.transact(async (tx) => {
        await tx.instances.insert(on('east', 'e', ended));
        await tx.instances.insert(on('west', 'w', ended));
      });
      const request = { platform: 'west', endedBefore: now, limit: 10 };
      expect((await store.transact((tx) => tx.instances.prune(request))).ids).toEqual(['w']);
      expect(await store.read.instances.byId('e')).not.toBeNull();
    });
  });

  describe('storage claims', () => {
    const takeGb = (volumeId: string, gb: number, capacityGb: number | null = 100) =>
      store.transact(async (tx) => {
        if ((await tx.volumes.byId(volumeId)) === null) await tx.volumes.insert(volume(volumeId));
        return tx.storageClaims.take({ volumeId, region: 'here', gb, capacityGb });
      });

    it('are taken up to the capacity of the location, to the last fraction, and freed once', async () => {
      for (let count = 0; count < 10; count++) expect(await takeGb(`${count}`, 0.1, 1)).toBe(true);
      expect(await takeGb('one more', 0.001, 1)).toBe(false);
      expect(await store.read.storageClaims.use()).toEqual([{ region: 'here', claimedGb: 1 }]);
      const releases = await store.transact(async (tx) => [
        await tx.storageClaims.release('3'),
        await tx.storageClaims.release('3'),
      ]);
      expect(releases).toEqual([true, false]);
      expect(await takeGb('one more', 0.1, 1)).toBe(true);
    });

    it('grow into the remaining capacity and shrink; a claim that does not fit is unchanged', async () => {
      await takeGb('a', 60);
      await takeGb('b', 30);
      expect(await takeGb('b', 41)).toBe(false);
      expect(await store.read.storageClaims.heldBy('b')).toBe(30);
      expect([await takeGb('b', 40), await takeGb('a', 10), await takeGb('b', 90)]).toEqual([
        ...[true, true, true],
      ]);
      expect(await store.read.storageClaims.use()).toEqual([{ region: 'here', claimedGb: 100 }]);
    });

    it('are unlimited without a capacity', async () => {
      expect([await takeGb('a', 900_000, null), await takeGb('b', 900_000, null)]).toEqual([true, true]);
      expect(await takeGb('c', 1, 1_800_000)).toBe(false);
      expect(await store.read.storageClaims.heldBy('nobody')).toBe(0);
    });

    it('are granted to as many concurrent requests as fit', async () => {
      const all = await Promise.all(Array.from({ length: 12 }, (_, index) => takeGb(`v${index}`, 15)));
      expect(all.filter(Boolean)).toHaveLength(6);
      expect(await store.read.storageClaims.use()).toEqual([{ region: 'here', claimedGb: 90 }]);
    });

    it('count for the account of the volumes, until they are gone', async () => {
      await takeGb('a', 60);
      await takeGb('b', 2.5);
      await insert(instance('i'));
      await insert(instance('j', { status: 'DESTROYED' }));
      const use = (id: string) =>
        store.transact(async ({ accountUse }) => {
          await accountUse.lock(id);
          return [
            await accountUse.instances(id),
            await accountUse.volumes(id),
            await accountUse.storageGb(id),
            await accountUse.liveTokens(id, now),
          ];
        });
      expect(await use(accountId)).toEqual([1, 2, 62.5, 0]);
      expect(await use('acct-2')).toEqual([0, 0, 0, 0]);
      await store.transact(async (tx) => {
        await tx.volumes.update({ ...volume('a'), deletedAt: now });
        await tx.storageClaims.release('a');
        const token = { accountId, parentDigest: Buffer.from('p'), createdAt: now };
        await tx.credentials.insertToken({ ...token, digest: Buffer.from('1'), expiresAt: now });
        await tx.credentials.insertToken({ ...token, digest: Buffer.from('2'), expiresAt: now + 1 });
      });
      expect(await use(accountId)).toEqual([1, 1, 2.5, 1]);
      const end = (owner: string, parent: string) =>
        store.transact((tx) => tx.credentials.deleteTokensBoughtWith(owner, Buffer.from(parent)));
      await end(accountId, 'q');
      await end('acct-2', 'p');
      expect(await use(accountId)).toEqual([1, 1, 2.5, 1]);
      await end(accountId, 'p');
      expect(await use(accountId)).toEqual([1, 1, 2.5, 0]);
    });
  });

  describe('capacity claims', () => {
    it('are listed with the owner refs of their holders', async () => {
      await insert(instance('a'));
      await insert(instance('b'));
      await store.transact((tx) => take(tx, 'a', 2));
      await store.transact((tx) => take(tx, 'b', 2));
      const of = (id: string, isKept = false) => {
        const { ownerRef, platform, status } = instance(id);
        return { ownerRef, platform, status, isKept, offerId: 'offer', region: 'here' };
      };
      expect(await store.read.claims.held()).toEqual(expect.arrayContaining([of('a'), of('b')]));
      await store.transact((tx) => tx.claims.release('a'));
      expect(await store.read.claims.held()).toEqual([of('b')]);
      const hold = { ...dueWork, resourceId: 'b', kind: 'hold' as const };
      await store.transact((tx) => tx.work.put(hold));
      expect(await store.read.claims.held()).toEqual([of('b', true)]);
      await store.transact((tx) => tx.work.put({ ...hold, kind: 'destroy' }));
      expect(await store.read.claims.held()).toEqual([of('b')]);
    });

    it('are taken once for an instance, up to the capacity, and freed once', async () => {
      for (const id of ['a', 'b', 'c']) await insert(instance(id));
      const answers = await store.transact(async (tx) => [
        await take(tx, 'a', 2),
        await take(tx, 'a', 2),
        await take(tx, 'b', 2),
        await take(tx, 'c', 2),
      ]);
      expect(answers).toEqual([true, true, true, false]);
      expect(await store.read.claims.use()).toEqual([{ offerId: 'offer', region: 'here', claimed: 2 }]);
      expect(
        await store.transact(async (tx) => [await tx.claims.release('a'), await tx.claims.release('a')]),
      ).toEqual([true, false]);
      expect(await store.transact((tx) => take(tx, 'c', 2))).toBe(true);
      expect(await store.read.claims.isHeldBy('c')).toBe(true);
      expect(await store.read.claims.isHeldBy('a')).toBe(false);
    });

    it('are never granted twice to concurrent requests', async () => {
      const ids = Array.from({ length: 40 }, (_, index) => `i${index}`);
      const tries = ids.map((id) =>
        store.transact(async (tx) => {
          await tx.instances.insert(instance(id));
          return take(tx, id, 7);
        }),
      );
      expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(7);
    });

    it('are rolled back with their transaction', async () => {
      await insert(instance('a'));
      await store
        .transact(async (tx) => {
          await take(tx, 'a', 1);
          throw new Error('no');
        })
        .catch(() => undefined);
      expect(await store.read.claims.use()).toEqual([]);
    });
  });

  describe('volumes', () => {
    it('keep their attachments separate', async () => {
      const data = volume('v', {
        name: 'data',
        sizeGb: 12.5,
        priceMicroUsdPerHour: 3,
        createOpenUntil: 7,
        requestId: 'req-1',
      });
      await insert(instance('a'));
      await store.transact(async (tx) => {
        await tx.volumes.insert(data);
        await tx.volumes.putAttachment({ volumeId: 'v', instanceId: 'a', state: 'attaching' });
        await tx.volumes.putAttachment({ volumeId: 'v', instanceId: 'a', state: 'attached' });
      });
      expect(await store.read.volumes.countByPlatform()).toMatchObject([{ platform: 'default', count: 1 }]);
      await store.transact((tx) => tx.volumes.update({ ...data, status: 'ATTACHED', deletedAt: now }));
      expect(await store.read.volumes.countByPlatform()).toEqual([]);
      expect(await store.read.volumes.endedByPlatform()).toEqual([{ platform: 'default', count: 1 }]);
      expect(await store.read.volumes.byId('v')).toEqual({ ...data, status: 'ATTACHED', deletedAt: now });
      expect(await store.read.volumes.byOwnerRef('berth-v')).not.toBeNull();
      expect(await store.read.volumes.attachmentsOfVolume('v')).toEqual([
        { volumeId: 'v', instanceId: 'a', state: 'attached' },
      ]);
      expect(await store.read.volumes.attachmentsOfInstance('a')).toHaveLength(1);
      await store.transact((tx) => tx.volumes.removeAttachment('v', 'a'));
      expect(await store.read.volumes.attachmentsOfInstance('a')).toEqual([]);
    });
  });
}
