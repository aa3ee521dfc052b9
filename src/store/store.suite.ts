import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eachLiveInstance } from '../orchestrator/instances/list.ts';
import { CREATE_IS_OPEN } from '../orchestrator/model/platform-resource.ts';
import type { InstanceRecord } from '../orchestrator/model/records.ts';
import type {
  ChangePosition,
  ListedInstance,
  LiveInstance,
  Store,
  Transaction,
} from '../orchestrator/model/store.ts';
import { nextTurn } from '../ports/clock.ts';
import { accountId, claim, dueWork, instance, now, volume } from '../testing/orchestrator-rows.ts';
import { describeOperators } from './operators.suite.ts';

interface StoreOfSuite {
  setup: () => Promise<Store>;
  teardown: (store: Store) => Promise<void>;
  /** Whether reads outside a transaction see its uncommitted writes, as in an in-memory database. */
  hasOneConnection?: boolean;
}

/** The requirements for every store. `setup` creates an empty one. */
export function describeStore(
  name: string,
  { setup, teardown, hasOneConnection = false }: StoreOfSuite,
): void {
  describe(name, () => {
    let store: Store;
    beforeEach(async () => {
      store = await setup();
      await store.transact((tx) =>
        tx.credentials.insertAccount({ id: accountId, name: 'one', passwordHash: null, createdAt: now }),
      );
    });
    afterEach(() => teardown(store));

    const insert = (record: InstanceRecord) => store.transact((tx) => tx.instances.insert(record));
    const take = (tx: Transaction, instanceId: string, capacity: number) =>
      tx.claims.take({ instanceId, offerId: 'offer', region: 'here', capacity });

    it('closes once, however often close is called', async () => {
      await Promise.all([store.close(), store.close()]);
      await store.close();
    });

    describe('transactions', () => {
      it('keep all or nothing', async () => {
        const broken = store.transact(async (tx) => {
          await tx.instances.insert(instance('a'));
          throw new Error('broken off');
        });
        await expect(broken).rejects.toThrow('broken off');
        expect(await store.read.instances.byId('a')).toBeNull();
      });

      it.skipIf(hasOneConnection)('show only committed data to reads outside', async () => {
        await store.transact(async (tx) => {
          await tx.instances.insert(instance('a'));
          expect(await tx.instances.byId('a')).not.toBeNull();
          expect(await store.read.instances.byId('a')).toBeNull();
        });
        expect(await store.read.instances.byId('a')).toEqual(instance('a'));
      });

      it('can be tested by several callers at once, leaving nothing behind', async () => {
        await Promise.all([store.proveWrites(), store.proveWrites()]);
        await insert(instance('a'));
        await store.proveWrites();
        expect(await store.read.instances.list({})).toEqual([instance('a')]);
      });

      it('run one after another if they read the same row by its id', async () => {
        await insert(instance('row'));
        const log: string[] = [];
        const run = (label: string) =>
          store.transact(async (tx) => {
            await tx.instances.byId('row');
            log.push('begins');
            await tx.instances.list({});
            await new Promise((resolve) => setImmediate(resolve));
            await tx.instances.insert(instance(label));
            log.push('ends');
          });
        await Promise.all(['a', 'b', 'c'].map(run));
        expect(log).toEqual(['begins', 'ends', 'begins', 'ends', 'begins', 'ends']);
      });

      it('continue after one that failed', async () => {
        await store.transact(() => Promise.reject(new Error('first'))).catch(() => undefined);
        await insert(instance('a'));
        expect(await store.read.instances.byId('a')).not.toBeNull();
      });

      it('notify listeners after the commit, and not about a rollback', async () => {
        const told: string[] = [];
        const unsubscribe = store.subscribe({
          instancesChanged: (records) => told.push(...records.map(({ id, status }) => `${id} ${status}`)),
        });
        await insert(instance('a'));
        await store
          .transact(async (tx) => {
            await tx.instances.insert(instance('b'));
            throw new Error('no');
          })
          .catch(() => undefined);
        await store.transact(async (tx) => {
          await tx.instances.update(instance('a', { status: 'ONLINE' }));
          await tx.instances.update(instance('a', { status: 'STOPPING' }));
        });
        unsubscribe();
        await insert(instance('c'));
        expect(told).toEqual(['a PROVISIONING', 'a STOPPING']);
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
          (tx: Transaction) =>
            tx.volumes.putAttachment({ volumeId: 'v', instanceId: 'a', state: 'attaching' }),
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
        const told: string[] = [];
        store.subscribe({ volumesChanged: (accountIds) => told.push(...accountIds) });
        await insert(instance('a'));
        await store.transact((tx) => tx.volumes.insert(volume('v')));
        await store.transact((tx) =>
          tx.volumes.putAttachment({ volumeId: 'v', instanceId: 'a', state: 'attached' }),
        );
        expect(told).toEqual([accountId, accountId]);
      });
    });

    describe('instances', () => {
      it('come back as they were written', async () => {
        const endpoint = {
          publicIp: '192.0.2.1',
          sshPort: 2222,
          sshUsername: 'ubuntu',
          portForwards: [{ internal_port: 22, external_port: 2222 }],
        };
        const record = instance('a', {
          name: 'имя 🚀',
          endpoint,
          hostKeyFingerprint: 'SHA256:x',
          attachCycle: true,
          error: 'why',
        });
        await insert(record);
        expect(await store.read.instances.byId('a')).toEqual(record);
        expect(await store.read.instances.byOwnerRef('berth-a')).toEqual(record);
        expect(await store.read.instances.byId('A')).toBeNull();
      });

      it('are listed page by page: each once, also those of one moment, despite concurrent creates and deletes', async () => {
        for (const id of ['c', 'a', 'e', 'b', 'd', 'f'])
          await insert(instance(id, id === 'a' ? { createdAt: now - 1 } : {}));
        await insert(instance('g', { status: 'DESTROYED' }));
        await insert(instance('h', { region: 'there' }));
        const page = (after?: ListedInstance) =>
          store.read.instances.page({ accountId, region: 'here', limit: 2, ...(after && { after }) });
        const first = await page();
        await store.transact(async (tx) => {
          await tx.instances.update(instance('c', { status: 'DESTROYED' }));
          await tx.instances.insert(instance('z', { createdAt: now + 1 }));
        });
        const second = await page(first.at(-1));
        const third = await page(second.at(-1));
        const pages = [first, second, third, await page(third.at(-1))];
        expect(pages.map((records) => records.map(({ id }) => id))).toEqual([
          ...[['a', 'b'], ['d', 'e'], ['f', 'z'], []],
        ]);
        expect(await store.read.instances.page({ accountId: 'acct-2', limit: 2 })).toEqual([]);
      });

      it('are read page by page while live, of all accounts, with the data expected on the platform', async () => {
        await store.transact((tx) =>
          tx.credentials.insertAccount({ id: 'a-2', name: 'two', passwordHash: null, createdAt: now }),
        );
        const endpoint = { publicIp: '192.0.2.1', sshPort: 22, sshUsername: 'root' };
        const live = [
          instance('f', { accountId: 'a-2', createdAt: now + 9 }),
          instance('b', { createdAt: now - 1 }),
          instance('a', { createOpenUntil: now, version: 7 }),
          instance('c', { status: 'ONLINE', endpoint, platform: 'east', host: 'rack-1' }),
        ];
        for (const record of live) await insert(record);
        await insert(instance('gone', { status: 'DESTROYED' }));
        const read: LiveInstance[] = [];
        for await (const row of eachLiveInstance(store.read.instances, 2)) read.push(row);
        expect(read).toEqual(
          live.map(({ id, accountId, createdAt, ownerRef, status, updatedAt, version, ...rest }) => ({
            ...{ id, accountId, createdAt, ownerRef, status, updatedAt, version },
            ...{ endpoint: rest.endpoint, createOpenUntil: rest.createOpenUntil },
            ...{ platform: rest.platform, host: rest.host },
          })),
        );
      });

      it('are read by their ids, tombstones too', async () => {
        const rows = [instance('a'), instance('b', { status: 'DESTROYED' })];
        for (const record of rows) await insert(record);
        const found = await store.read.instances.byIds(['b', 'none', 'a']);
        expect(found.sort((one, other) => one.id.localeCompare(other.id))).toEqual(rows);
        expect(await store.read.instances.byIds([])).toEqual([]);
      });

      it('are listed oldest first, by account and region, without the destroyed ones', async () => {
        await store.transact((tx) =>
          tx.credentials.insertAccount({ id: 'acct-2', name: 'two', passwordHash: null, createdAt: now }),
        );
        await insert(instance('new', { createdAt: now + 2 }));
        await insert(instance('old', { createdAt: now + 1 }));
        await insert(instance('elsewhere', { region: 'there' }));
        await insert(instance('gone', { status: 'DESTROYED' }));
        await insert(instance('foreign', { accountId: 'acct-2' }));
        const ids = async (filter: { accountId?: string; region?: string }) =>
          (await store.read.instances.list(filter)).map(({ id }) => id);
        expect(await ids({ accountId })).toEqual(['elsewhere', 'old', 'new']);
        expect(await ids({ accountId, region: 'here' })).toEqual(['old', 'new']);
        expect(await ids({})).toContain('foreign');
        expect(await store.read.instances.countByStatus()).toEqual([{ status: 'PROVISIONING', count: 4 }]);
        const placed = await store.read.instances.countByPlacement();
        const priceOf = (count: number) => count * instance('any').priceMicroUsdPerHour;
        const { offerId } = instance('any');
        expect(placed.toSorted((a, b) => a.count - b.count)).toEqual([
          { offerId, region: 'there', status: 'PROVISIONING', count: 1, priceMicroUsdPerHour: priceOf(1) },
          { offerId, region: 'here', status: 'PROVISIONING', count: 3, priceMicroUsdPerHour: priceOf(3) },
        ]);
      });

      it('have one owner ref each', async () => {
        await insert(instance('a'));
        await expect(insert(instance('b', { ownerRef: 'berth-a' }))).rejects.toThrow();
      });
    });

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

    describe('work', () => {
      const put = (resourceId: string, changes: Partial<Parameters<Transaction['work']['put']>[0]> = {}) =>
        store.transact((tx) => tx.work.put({ resourceId, ...dueWork, ...changes }));

      it('is claimed when it is due, oldest first, by one holder', async () => {
        await put('later', { notBefore: now + 5 });
        await put('second', { notBefore: now });
        await put('first', { notBefore: now - 5 });
        await put('volume', { resourceKind: 'volume' });
        const [first, ...rest] = await store.claimWork({ ...claim, limit: 1 });
        expect([first?.resourceId, rest.length, first?.attempt]).toEqual(['first', 0, 1]);
        expect((await store.claimWork(claim)).map(({ resourceId }) => resourceId)).toEqual(['second']);
        expect(await store.claimWork(claim)).toEqual([]);
        expect(await store.nextWorkAt('default')).toBe(now);
      });

      it('is claimed again when the lease has run out, and the first holder writes nothing more [lease-fencing]', async () => {
        await put('a');
        const [first] = await store.claimWork(claim);
        const [second] = await store.claimWork({ ...claim, now: now + 1000, leaseUntil: now + 2000 });
        if (first === undefined || second === undefined) throw new Error('expected two claims');
        expect(second.attempt).toBe(2);
        await store.transact(async (tx) => {
          expect(await tx.work.check(first)).toBe('lost');
          await tx.work.finish(first);
          await tx.work.release(first, { cookie: 'stale', notBefore: 0, lastError: null });
        });
        await store.transact(async (tx) => expect(await tx.work.check(second)).toBe('held'));
        expect((await store.read.work.of('a'))?.cookie).toBeNull();
      });

      it('is not mistaken for later work of the same resource by a holder from before', async () => {
        await put('a');
        const [stale] = await store.claimWork({ ...claim, leaseUntil: now });
        const [holder] = await store.claimWork(claim);
        if (stale === undefined || holder === undefined) throw new Error('expected two claims');
        await store.transact((tx) => tx.work.finish(holder));
        await put('a');
        await store.claimWork(claim);
        await store.transact(async (tx) => expect(await tx.work.check(stale)).toBe('lost'));
      });

      it('stays with its holder until the lease is released, even if it is replaced', async () => {
        await put('a');
        const [lease] = await store.claimWork(claim);
        if (lease === undefined) throw new Error('expected a claim');
        await put('a', { kind: 'destroy' });
        expect(await store.claimWork(claim)).toEqual([]);
        await store.transact(async (tx) => {
          expect(await tx.work.check(lease)).toBe('superseded');
          await tx.work.release(lease);
        });
        const [next] = await store.claimWork(claim);
        expect([next?.kind, next?.attempt]).toEqual(['destroy', 1]);
      });

      it('is replaced by a new, free step, unless its lease was lost', async () => {
        await put('a', { deadlineAt: now + 10 });
        const [stale] = await store.claimWork({ ...claim, leaseUntil: now });
        const [lease] = await store.claimWork(claim);
        if (stale === undefined || lease === undefined) throw new Error('expected two claims');
        const next = { kind: 'verify', notBefore: now + 5, deadlineAt: now + 20 } as const;
        await store.transact((tx) => tx.work.replace(stale, { ...next, kind: 'destroy' }));
        expect((await store.read.work.of('a'))?.kind).toBe('create');
        await store.transact((tx) => tx.work.replace(lease, next));
        expect(await store.read.work.of('a')).toMatchObject({
          ...next,
          attempt: 0,
          cookie: null,
          lastError: null,
          leaseUntil: 0,
        });
        expect(await store.claimWork(claim)).toEqual([]);
        expect(await store.claimWork({ ...claim, now: now + 5 })).toMatchObject([
          { kind: 'verify', attempt: 1 },
        ]);
      });

      it('keeps its current deadline after a check', async () => {
        await put('a', { deadlineAt: now + 10 });
        const [lease] = await store.claimWork(claim);
        if (lease === undefined) throw new Error('expected a claim');
        await store.transact((tx) => tx.work.extendDeadlines('default', 5));
        await store.transact((tx) => tx.work.check(lease));
        expect(lease.deadlineAt).toBe(now + 15);
      });

      it('counts as replaced if it is put again with the same kind', async () => {
        await put('a', { kind: 'attach', resourceKind: 'volume' });
        const [lease] = await store.claimWork({ ...claim, resourceKind: 'volume' });
        if (lease === undefined) throw new Error('expected a claim');
        await put('a', { kind: 'attach', resourceKind: 'volume' });
        await store.transact(async (tx) => expect(await tx.work.check(lease)).toBe('superseded'));
      });

      it('keeps cookie and error between two calls, and is gone when finished', async () => {
        await put('a');
        const [lease] = await store.claimWork(claim);
        if (lease === undefined) throw new Error('expected a claim');
        await store.transact((tx) =>
          tx.work.release(lease, { cookie: 'task-7', notBefore: now + 50, lastError: 'busy' }),
        );
        expect(await store.read.work.of('a')).toMatchObject({
          cookie: 'task-7',
          lastError: 'busy',
          attempt: 1,
        });
        expect(await store.nextWorkAt('default')).toBe(now + 50);
        const [again] = await store.claimWork({ ...claim, now: now + 50 });
        if (again === undefined) throw new Error('expected a claim');
        await store.transact((tx) => tx.work.finish(again));
        expect([
          await store.read.work.of('a'),
          await store.nextWorkAt('default'),
          (await store.read.work.backlog()).count,
        ]).toEqual([null, null, 0]);
      });

      it('restarts its attempt count where its holder sets it', async () => {
        await put('a');
        await store.claimWork({ ...claim, leaseUntil: now });
        await store.claimWork({ ...claim, leaseUntil: now });
        const [third] = await store.claimWork(claim);
        if (third === undefined) throw new Error('expected a claim');
        expect(third.attempt).toBe(3);
        const later = { cookie: 'task-7', notBefore: now, lastError: null, attempt: 1 };
        await store.transact((tx) => tx.work.release(third, later));
        expect((await store.claimWork(claim))[0]?.attempt).toBe(2);
      });

      it('can be made due, and stale leases ended if no other process can hold one', async () => {
        await put('a', { notBefore: now + 60_000 });
        await store.transact((tx) => tx.work.makeDue('a', now));
        expect(await store.claimWork(claim)).toHaveLength(1);
        await store.endAbandonedLeases();
        expect(await store.claimWork(claim)).toHaveLength(store.isShared ? 0 : 1);
      });

      it('is claimed when a clock that was wrong has put it, or its lease, too far ahead [work-in-the-future-claimed]', async () => {
        const wrong = now + 365 * 24 * 3600 * 1000;
        await put('put', { notBefore: wrong });
        await put('claimed');
        expect(
          await store.claimWork({ ...claim, now: wrong, leaseUntil: wrong + 1000, limit: 10 }),
        ).toHaveLength(2);
        expect((await store.claimWork(claim)).map(({ resourceId }) => resourceId).sort()).toEqual([
          'claimed',
          'put',
        ]);
        expect(await store.claimWork(claim)).toEqual([]);
      });

      it('respects a pause and a lease of normal length', async () => {
        await put('paused', { notBefore: now + 3600 * 1000 });
        await put('held');
        const [lease] = await store.claimWork({ ...claim, leaseUntil: now + 3600 * 1000 });
        expect(lease?.resourceId).toBe('held');
        expect(await store.claimWork(claim)).toEqual([]);
      });

      it('wakes its listener', async () => {
        let wakes = 0;
        store.subscribe({ workChanged: () => wakes++ });
        await put('a');
        await store.transact((tx) => tx.instances.list({}).then(() => undefined));
        expect(wakes).toBe(1);
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
        expect((await store.read.credentials.tokenByDigest(Buffer.alloc(32, 8)))?.parentDigest).toEqual(
          digest,
        );
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

    describe('tombstones', () => {
      const ended = (id: string, at: number, changes: Partial<InstanceRecord> = {}) =>
        instance(id, { status: 'DESTROYED', updatedAt: at, createOpenUntil: null, ...changes });
      const deleted = (id: string, at: number | null) =>
        volume(id, { status: 'DELETING', createdAt: now - 100, deletedAt: at });
      const prune = (limit = 10) =>
        store.transact(async (tx) => ({
          instances: await tx.instances.prune({ platform: 'default', endedBefore: now, limit }),
          volumes: await tx.volumes.prune({ platform: 'default', endedBefore: now, limit }),
        }));
      const isThere = async (id: string) =>
        (await store.read.instances.byId(id)) !== null || (await store.read.volumes.byId(id)) !== null;
      const none = { ids: [], newestCreatedAt: null };

      it('are pruned once they ended before a moment, the oldest first, with the record of their loss', async () => {
        await store.transact(async (tx) => {
          await tx.instances.insert(ended('late', now));
          await tx.instances.insert(ended('second', now - 1, { createdAt: now - 20 }));
          await tx.instances.insert(ended('first', now - 2, { createdAt: now - 10 }));
          await tx.instances.insert(instance('live', { updatedAt: now - 9 }));
          await tx.losses.add({ instanceId: 'first', at: now - 2 });
          await tx.volumes.insert(deleted('vol-late', now));
          await tx.volumes.insert(deleted('vol-first', now - 2));
          await tx.volumes.insert(deleted('vol-live', null));
        });
        const one = { ids: ['first'], newestCreatedAt: now - 10 };
        expect(await prune(1)).toEqual({
          instances: one,
          volumes: { ids: ['vol-first'], newestCreatedAt: now - 100 },
        });
        expect([await isThere('first'), await isThere('second')]).toEqual([false, true]);
        expect(await store.read.losses.includes('first')).toBe(false);
        expect(await prune()).toEqual({
          instances: { ids: ['second'], newestCreatedAt: now - 20 },
          volumes: none,
        });
        expect(await prune()).toEqual({ instances: none, volumes: none });
        for (const id of ['late', 'live', 'vol-late', 'vol-live']) expect(await isThere(id), id).toBe(true);
        expect(await isThere('vol-first')).toBe(false);
      });

      it.each<[string, (tx: Transaction) => Promise<unknown>]>([
        ['has work', (tx) => tx.work.put({ ...dueWork, kind: 'destroy', resourceId: 'a' })],
        ['holds a unit', (tx) => take(tx, 'a', 1)],
        [
          'may be asked for again by its key',
          (tx) =>
            tx.idempotency.insert({
              accountId,
              key: 'k',
              requestDigest: Buffer.alloc(32),
              resourceId: 'a',
              createdAt: now,
            }),
        ],
        [
          'may still be created',
          (tx) => tx.instances.update(ended('a', now - 1, { createOpenUntil: CREATE_IS_OPEN })),
        ],
        [
          'has a volume',
          async (tx) => {
            await tx.volumes.insert(deleted('v', now - 1));
            await tx.volumes.putAttachment({ volumeId: 'v', instanceId: 'a', state: 'attached' });
          },
        ],
      ])('are kept where one %s', async (_what, prepare) => {
        await insert(ended('a', now - 1));
        await store.transact(prepare);
        expect(await prune()).toEqual({ instances: none, volumes: none });
        expect(await isThere('a')).toBe(true);
      });

      it.each<[string, (tx: Transaction) => Promise<unknown>]>([
        [
          'has work',
          (tx) => tx.work.put({ ...dueWork, resourceKind: 'volume', kind: 'destroy', resourceId: 'v' }),
        ],
        [
          'holds storage',
          (tx) => tx.storageClaims.take({ volumeId: 'v', region: 'here', gb: 1, capacityGb: null }),
        ],
      ])('are kept where a volume %s', async (_what, prepare) => {
        await store.transact((tx) => tx.volumes.insert(deleted('v', now - 1)));
        await store.transact(prepare);
        expect(await prune()).toEqual({ instances: none, volumes: none });
        expect(await isThere('v')).toBe(true);
      });
    });

    it('keeps cordons in order of start, and forgets those that are over [store-cordons]', async () => {
      const base = { kind: 'region', name: 'here', platform: null, reason: null, by: 'ann' } as const;
      const cordon = { ...base, id: 'b', since: now, until: null, isMaintenance: false };
      const windows = [
        { ...base, id: 'a', since: now + 1, until: now + 5, isMaintenance: true, reason: 'new switches' },
        {
          ...base,
          kind: 'host',
          platform: 'east',
          id: 'c',
          since: now - 1,
          until: now + 9,
          isMaintenance: true,
        },
      ] as const;
      await store.transact(async (tx) => {
        for (const one of [cordon, ...windows]) await tx.cordons.insert(one);
      });
      expect(await store.read.cordons.list()).toEqual([windows[1], cordon, windows[0]]);
      await store.transact((tx) => tx.cordons.removeEndedBefore(now + 6));
      expect(await store.read.cordons.list()).toEqual([windows[1], cordon]);
      await store.transact((tx) => tx.cordons.remove('c'));
      expect(await store.transact((tx) => tx.cordons.list())).toEqual([cordon]);
    });

    it('keeps the start time and the acknowledgement of alarms, however often they are seen', async () => {
      const alarm = {
        kind: 'platform_down',
        platform: 'east',
        text: 'it is down',
        acknowledgedBy: null,
      } as const;
      const put = (subject: string, at: number, text: string = alarm.text) =>
        store.transact((tx) => tx.alarms.put({ ...alarm, subject, text, since: at, lastSeenAt: at }));
      await put('west', now + 1);
      await put('east', now);
      const rows = await store.transact((tx) => tx.alarms.acknowledge({ kind: 'platform_down' }, 'ann'));
      expect(rows).toHaveLength(2);
      await put('east', now + 5, 'it is down still');
      expect(await store.read.alarms.list()).toEqual([
        {
          ...alarm,
          ...{ subject: 'east', text: 'it is down still', since: now, lastSeenAt: now + 5 },
          acknowledgedBy: 'ann',
        },
        { ...alarm, subject: 'west', since: now + 1, lastSeenAt: now + 1, acknowledgedBy: 'ann' },
      ]);
      await store.transact((tx) => tx.alarms.removeSeenBefore(now + 5, ['disk_lost']));
      expect(await store.read.alarms.list()).toHaveLength(2);
      await store.transact((tx) => tx.alarms.removeSeenBefore(now + 5, ['disk_lost', 'platform_down']));
      await store.transact((tx) => tx.alarms.remove({ kind: 'platform_suspect', subject: 'east' }));
      expect((await store.read.alarms.list()).map(({ subject }) => subject)).toEqual(['east']);
      await store.transact((tx) => tx.alarms.remove({ kind: 'platform_down', subject: 'east' }));
      expect(await store.read.alarms.list()).toEqual([]);
      const of = { kind: 'platform_down', subject: 'east' } as const;
      expect(await store.transact((tx) => tx.alarms.acknowledge(of, 'ann'))).toEqual([]);
    });

    describeOperators(() => store, now);

    describe('the operator search', () => {
      const found = async (of: Parameters<typeof store.read.instances.countFound>[0]) => {
        const { instances } = store.read;
        const ids = (await instances.search({ ...of, order: 'oldest', limit: 10 })).map(({ id }) => id);
        expect(await instances.countFound(of)).toBe(ids.length);
        return ids;
      };

      it('finds by each filter and by text anywhere, of any case, without wildcards', async () => {
        const endpoint = { publicIp: '192.0.2.7', sshPort: 22, sshUsername: 'ubuntu' };
        await insert(instance('a', { name: 'Training 100%', createdAt: now + 1 }));
        await insert(instance('b', { endpoint, host: 'node-1', platform: 'east', offerId: 'big' }));
        await insert(instance('c', { status: 'ERROR', error: 'No kernel_found', region: 'there' }));
        const failed = { at: now, cause: 'request', fromStatus: 'PROVISIONING', toStatus: 'ERROR' } as const;
        for (const instanceId of ['b', 'c'])
          await store.transact((tx) =>
            tx.history.moved({ ...failed, instanceId, detail: 'node-7: no Disk' }),
          );
        await insert(instance('d', { status: 'DESTROYED', name: 'training' }));
        expect(await found({})).toEqual(['b', 'c', 'a']);
        expect(await found({ accountId })).toEqual(['b', 'c', 'a']);
        expect(await found({ accountId: 'acct-2' })).toEqual([]);
        expect(await found({ status: 'ERROR' })).toEqual(['c']);
        expect(await found({ offerId: 'big' })).toEqual(['b']);
        expect(await found({ region: 'there' })).toEqual(['c']);
        expect(await found({ platform: 'east', host: 'node-1' })).toEqual(['b']);
        expect(await found({ text: 'training' })).toEqual(['a']);
        expect(await found({ text: '100%' })).toEqual(['a']);
        expect(await found({ text: '%' })).toEqual(['a']);
        expect(await found({ text: 'kernel_f' })).toEqual(['c']);
        expect(await found({ text: '_' })).toEqual(['c']);
        expect(await found({ text: 'no disk' })).toEqual(['c']);
        expect(await found({ text: '192.0.2.7' })).toEqual(['b']);
        expect(await found({ text: 'BERTH-C' })).toEqual(['c']);
        expect(await found({ text: '\\' })).toEqual([]);
        await insert(instance('e', { name: 'Émile BÜRO', createdAt: now + 2 }));
        // Only A to Z match in either case, in each database. Other letters match exactly.
        expect(await found({ text: 'Émile bÜro' })).toEqual(['e']);
        expect(await found({ text: 'émile' })).toEqual([]);
        expect(await found({ text: 'training', status: 'ERROR' })).toEqual([]);
      });

      it('continues after a position, in both orders', async () => {
        for (const [index, id] of ['a', 'b', 'c', 'd'].entries())
          await insert(instance(id, { createdAt: now + Math.floor(index / 2) }));
        const page = async (order: 'oldest' | 'newest', after: ListedInstance) =>
          (await store.read.instances.search({ order, after, limit: 2 })).map(({ id }) => id);
        expect(await page('oldest', { id: 'a', createdAt: now })).toEqual(['b', 'c']);
        expect(await page('newest', { id: 'c', createdAt: now + 1 })).toEqual(['b', 'a']);
      });
    });

    it('lists open work, longest waiting first', async () => {
      for (const [resourceId, notBefore] of [
        ['b', now + 1],
        ['a', now + 1],
        ['c', now],
      ] as const)
        await store.transact((tx) => tx.work.put({ ...dueWork, resourceId, notBefore }));
      expect((await store.read.work.list(10)).map(({ resourceId }) => resourceId)).toEqual(['c', 'a', 'b']);
      await store.claimWork({ ...claim, limit: 1 });
      expect(await store.read.work.list(1)).toEqual([
        {
          ...dueWork,
          ...{ resourceId: 'c', platform: 'default', cookie: null, attempt: 1, lastError: null },
          ...{ waitedAttempt: null, isHeld: false, waitsSince: now, leaseUntil: now + 1000 },
        },
      ]);
    });

    describe('the history of instances', () => {
      const moved = {
        at: now,
        cause: 'request',
        fromStatus: 'ONLINE',
        toStatus: 'STOPPING',
        detail: null,
      } as const;
      const step = {
        at: now + 1,
        cause: 'stop',
        attempt: 1,
        next: 'finish',
        detail: null,
        calls: [{ call: 'stop', outcome: 'done', tookMs: 5 }],
        console: null,
        tookMs: 7,
      } as const;
      const toStep = (instanceId: string) => ({ ...step, instanceId, calls: [...step.calls] });

      it('is in order, with the events of one transaction merged', async () => {
        await store.transact((tx) => tx.history.moved({ ...moved, instanceId: 'a' }));
        await store.transact(async (tx) => {
          const to = { ...moved, instanceId: 'a', fromStatus: 'STOPPING', toStatus: 'STOPPED' } as const;
          await tx.history.moved(to);
          await tx.history.step(toStep('a'), false);
          await tx.history.step(toStep('b'), false);
        });
        const none = { attempt: null, next: null, calls: [], console: null, tookMs: null, by: null };
        expect(await store.read.history.of('a')).toEqual([
          { ...moved, ...none, instanceId: 'a' },
          { ...toStep('a'), fromStatus: 'STOPPING', toStatus: 'STOPPED', by: null },
        ]);
        expect(await store.read.history.of('b')).toEqual([]);
      });

      it('records who made a request, also for requests that do not change the status [history-of-requests]', async () => {
        const by = { account: accountId, key: 'key-1', address: '192.0.2.1' };
        await store.transact((tx) => tx.history.asked({ instanceId: 'a', at: now, what: 'start', by }));
        await store.transact(async (tx) => {
          await tx.history.moved({ ...moved, instanceId: 'a', by });
          await tx.history.step(toStep('a'), false);
        });
        expect(await store.read.history.of('a')).toMatchObject([
          { cause: 'request', fromStatus: null, toStatus: null, detail: 'start', by },
          { cause: 'stop', toStatus: 'STOPPING', by },
        ]);
      });

      it('has no events of a failed transaction', async () => {
        const broken = store.transact(async (tx) => {
          await tx.history.step(toStep('a'), true);
          throw new Error('broken off');
        });
        await expect(broken).rejects.toThrow('broken off');
        expect(await store.read.history.of('a')).toEqual([]);
      });

      it('reports how creates ended, among its newest events', async () => {
        const ended = { ...moved, fromStatus: 'PROVISIONING', cause: 'verify' } as never as typeof moved;
        const end = (instanceId: string, at: number, toStatus: 'ONLINE' | 'ERROR') =>
          store.transact((tx) => tx.history.moved({ ...ended, instanceId, at, toStatus }));
        await store.transact((tx) => tx.instances.insert(instance('a', { createdAt: now - 9 })));
        await end('early', now - 1, 'ONLINE');
        await end('a', now, 'ONLINE');
        await store.transact((tx) => tx.history.moved({ ...moved, instanceId: 'a', at: now + 1 }));
        await end('pruned', now + 2, 'ERROR');
        const read = (newest: number) => store.read.history.provisionOutcomes({ since: now, newest });
        const common = { cause: 'verify', calls: [] };
        expect(await read(100)).toEqual([
          { ...common, instanceId: 'a', at: now, toStatus: 'ONLINE', createdAt: now - 9 },
          { ...common, instanceId: 'pruned', at: now + 2, toStatus: 'ERROR', createdAt: null },
        ]);
        expect((await read(2)).map(({ instanceId }) => instanceId)).toEqual(['pruned']);
      });

      it('is pruned from its oldest event on', async () => {
        for (const at of [now, now + 1, now + 2])
          await store.transact((tx) => tx.history.step({ ...toStep('a'), at }, true));
        const prune = (before: number) => store.transact((tx) => tx.history.pruneOldest(before, 2));
        expect(await prune(now)).toBe(0);
        expect(await prune(now + 3)).toBe(2);
        expect((await store.read.history.of('a')).map(({ at }) => at)).toEqual([now + 2]);
        expect(await prune(now + 3)).toBe(1);
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
  });
}
