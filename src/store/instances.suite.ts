import { beforeEach, describe, expect, it } from 'vitest';
import { accountId, dueWork, instance, now, volume } from '../../test/support/rows/orchestrator-rows.ts';
import { eachLiveInstance } from '../orchestrator/instances/list.ts';
import { CREATE_IS_OPEN } from '../orchestrator/model/platform-resource.ts';
import type { InstanceRecord } from '../orchestrator/model/records.ts';
import type { ListedInstance, LiveInstance, Store, Transaction } from '../orchestrator/model/store.ts';

/** Instances: rows, tombstones, history, and the search of operators. */
export function describeInstances(storeOf: () => Store): void {
  let store: Store;
  beforeEach(() => {
    store = storeOf();
  });
  const insert = (record: InstanceRecord) => store.transact((tx) => tx.instances.insert(record));
  const take = (tx: Transaction, instanceId: string, capacity: number) =>
    tx.claims.take({ instanceId, offerId: 'offer', region: 'here', capacity });

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
        await store.transact((tx) => tx.history.moved({ ...failed, instanceId, detail: 'node-7: no Disk' }));
      await insert(instance('d', { status: 'DESTROYED', name: 'training' }));
      expect(await found({})).toEqual(['b', 'c', 'a']);
      expect(await found({ accountId })).toEqual(['b', 'c', 'a']);
      expect(await found({ accountId: 'acct-2' })).toEqual([]);
      expect(await found({ status: 'ERROR' })).toEqual(['c']);
      expect(await found({ offerId: 'big' })).toEqual(['b']);
      expect(await found({ region: 'there' })).toEqual(['c']);
      expect(await found({ platform: 'east', host: 'node-1' })).toEqual(['b']);
      expect(await found({ idPrefix: 'a' })).toEqual(['a']);
      expect(await found({ idPrefix: '%' })).toEqual([]);
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
        await tx.history.step(toStep('a'), 'omit');
        await tx.history.step(toStep('b'), 'omit');
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
      await store.transact((tx) => tx.history.requested({ instanceId: 'a', at: now, what: 'start', by }));
      await store.transact(async (tx) => {
        await tx.history.moved({ ...moved, instanceId: 'a', by });
        await tx.history.step(toStep('a'), 'omit');
      });
      expect(await store.read.history.of('a')).toMatchObject([
        { cause: 'request', fromStatus: null, toStatus: null, detail: 'start', by },
        { cause: 'stop', toStatus: 'STOPPING', by },
      ]);
    });

    it('has no events of a failed transaction', async () => {
      const broken = store.transact(async (tx) => {
        await tx.history.step(toStep('a'), 'row');
        throw new Error('broken off');
      });
      await expect(broken).rejects.toThrow('broken off');
      expect(await store.read.history.of('a')).toEqual([]);
    });

    it('reports how creates ended, and later failures, the newest first', async () => {
      const ended = { ...moved, fromStatus: 'PROVISIONING', cause: 'verify' } as never as typeof moved;
      const end = (instanceId: string, at: number, toStatus: 'ONLINE' | 'ERROR') =>
        store.transact((tx) => tx.history.moved({ ...ended, instanceId, at, toStatus }));
      await store.transact((tx) => tx.instances.insert(instance('a', { createdAt: now - 9 })));
      await end('early', now - 1, 'ONLINE');
      await end('a', now, 'ONLINE');
      await store.transact((tx) => tx.history.moved({ ...moved, instanceId: 'a', at: now + 1 }));
      await end('pruned', now + 2, 'ERROR');
      await store.transact((tx) =>
        tx.history.moved({ ...moved, instanceId: 'a', at: now + 3, fromStatus: 'ONLINE', toStatus: 'ERROR' }),
      );
      const read = (limit: number) => store.read.history.outcomes({ since: now, limit });
      const { platform, offerId, region, createdAt } = instance('a', { createdAt: now - 9 });
      const ofA = { calls: [], instanceId: 'a', instance: { platform, offerId, region, createdAt } };
      const failed = { cause: 'verify', calls: [], instanceId: 'pruned', instance: null };
      expect(await read(100)).toEqual([
        { ...ofA, cause: moved.cause, at: now + 3, fromStatus: 'ONLINE', toStatus: 'ERROR' },
        { ...failed, at: now + 2, fromStatus: 'PROVISIONING', toStatus: 'ERROR' },
        { ...ofA, cause: 'verify', at: now, fromStatus: 'PROVISIONING', toStatus: 'ONLINE' },
      ]);
      expect(await read(2)).toHaveLength(2);
    });

    it('has its newest event replaced, and is pruned from its oldest on', async () => {
      for (const at of [now, now + 1, now + 2])
        await store.transact((tx) => tx.history.step({ ...toStep('a'), at }, 'row'));
      const prune = (before: number) => store.transact((tx) => tx.history.pruneOldest(before, 2));
      expect(await prune(now)).toBe(0);
      expect(await prune(now + 3)).toBe(2);
      expect((await store.read.history.of('a')).map(({ at }) => at)).toEqual([now + 2]);
      const calls = [{ call: 'destroy', outcome: 'conflict', tookMs: 1 }];
      const later = { ...toStep('a'), at: now + 9, attempt: 7, calls };
      await store.transact((tx) => tx.history.step(later, 'replacement'));
      expect(await store.read.history.newest('a', 2)).toMatchObject([{ at: now + 9, attempt: 7, calls }]);
      expect(await prune(now + 10)).toBe(1);
    });
  });
}
