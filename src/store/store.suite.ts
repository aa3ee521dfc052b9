import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { accountId, claim, dueWork, instance, now } from '../../test/support/rows/orchestrator-rows.ts';
import type { InstanceRecord } from '../orchestrator/model/records.ts';
import type { Store, Transaction } from '../orchestrator/model/store.ts';
import { describeAccounts } from './accounts.suite.ts';
import { describeAlarms } from './alarms.suite.ts';
import { NotBindable } from './bindable.ts';
import { describeClaims } from './claims.suite.ts';
import { describeFigures } from './figures.suite.ts';
import { describeInstances } from './instances.suite.ts';
import { describeOperators } from './operators.suite.ts';

interface StoreOfSuite {
  setup: () => Promise<Store>;
  teardown: (store: Store) => Promise<void>;
}

/** The requirements for every store. `setup` creates an empty one. */
export function describeStore(name: string, { setup, teardown }: StoreOfSuite): void {
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

    it('closes once, however often close is called', async () => {
      await Promise.all([store.close(), store.close()]);
      await store.close();
    });

    describe('transactions', () => {
      it('are not committed without a write that was refused, also if nobody waited for it [refused-write]', async () => {
        const broken = store.transact(async (tx) => {
          await tx.instances.insert(instance('a'));
          await tx.instances.insert(instance('a\0'));
          await tx.instances.byId('a');
        });
        await expect(broken).rejects.toThrow(NotBindable);
        expect(await store.read.instances.list({})).toEqual([]);
      });

      it('keep all or nothing', async () => {
        const broken = store.transact(async (tx) => {
          await tx.instances.insert(instance('a'));
          throw new Error('broken off');
        });
        await expect(broken).rejects.toThrow('broken off');
        expect(await store.read.instances.byId('a')).toBeNull();
      });

      it('show only committed data to reads outside', async () => {
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
        const events: string[] = [];
        const unsubscribe = store.subscribe({
          instancesChanged: (records) => events.push(...records.map(({ id, status }) => `${id} ${status}`)),
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
        expect(events).toEqual(['a PROVISIONING', 'a STOPPING']);
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
          expect(await tx.work.check(first)).toMatchObject({ state: 'lost' });
          await tx.work.finish(first);
          await tx.work.release(first, { cookie: 'stale', notBefore: 0, lastError: null });
        });
        await store.transact(async (tx) =>
          expect(await tx.work.check(second)).toMatchObject({ state: 'held' }),
        );
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
        await store.transact(async (tx) =>
          expect(await tx.work.check(stale)).toMatchObject({ state: 'lost' }),
        );
      });

      it('stays with its holder until the lease is released, even if it is replaced', async () => {
        await put('a');
        const [lease] = await store.claimWork(claim);
        if (lease === undefined) throw new Error('expected a claim');
        await put('a', { kind: 'destroy' });
        expect(await store.claimWork(claim)).toEqual([]);
        await store.transact(async (tx) => {
          expect(await tx.work.check(lease)).toMatchObject({ state: 'superseded' });
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

      it('shows its current deadline in a check', async () => {
        await put('a', { deadlineAt: now + 10 });
        const [lease] = await store.claimWork(claim);
        if (lease === undefined) throw new Error('expected a claim');
        await store.transact((tx) => tx.work.extendDeadlines('default', 5));
        const found = await store.transact((tx) => tx.work.check(lease));
        expect(found).toEqual({ state: 'held', deadlineAt: now + 15 });
      });

      it('counts as replaced if it is put again with the same kind', async () => {
        await put('a', { kind: 'attach', resourceKind: 'volume' });
        const [lease] = await store.claimWork({ ...claim, resourceKind: 'volume' });
        if (lease === undefined) throw new Error('expected a claim');
        await put('a', { kind: 'attach', resourceKind: 'volume' });
        await store.transact(async (tx) =>
          expect(await tx.work.check(lease)).toMatchObject({ state: 'superseded' }),
        );
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

      it('keeps the progress of a platform until the holder writes another, or the step ends', async () => {
        const progress = { phase: 'spawning', since: now, deadlineAt: now + 9 };
        const later = { cookie: null, notBefore: now, lastError: null };
        const shown = async () => (await store.read.work.of('a'))?.progress;
        const holder = async () => {
          const [lease] = await store.claimWork(claim);
          if (lease === undefined) throw new Error('expected a claim');
          return lease;
        };
        await put('a');
        const first = await holder();
        expect(first.progress).toBeNull();
        await store.transact((tx) => tx.work.release(first, { ...later, progress }));
        const second = await holder();
        expect([second.progress, (await store.read.work.list(9))[0]?.progress]).toEqual([progress, progress]);
        await store.transact((tx) => tx.work.release(second, later));
        expect(await shown()).toEqual(progress);
        const third = await holder();
        await store.transact((tx) => tx.work.release(third, { ...later, progress: null }));
        expect(await shown()).toBeNull();
        for (const end of ['replace', 'put'] as const) {
          const lease = await holder();
          await store.transact((tx) => tx.work.release(lease, { ...later, progress }));
          const next = { kind: 'verify', notBefore: now, deadlineAt: null } as const;
          if (end === 'put') await put('a');
          else {
            const last = await holder();
            await store.transact((tx) => tx.work.replace(last, next));
          }
          expect([end, await shown()]).toEqual([end, null]);
        }
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

      it('can be made due, as leased and waiting work is at the start of the only process [work-due-at-start]', async () => {
        await put('a', { notBefore: now + 60_000 });
        await store.transact((tx) => tx.work.makeDue('a', now));
        expect(await store.claimWork(claim)).toHaveLength(1);
        await put('b', { notBefore: now + 60_000 });
        await put('c');
        const [lease] = await store.claimWork(claim);
        if (lease === undefined) throw new Error('nothing was due');
        const waiting = { notBefore: now + 60_000, lastError: 'it waits', waitedAttempt: 1, attempt: 0 };
        await store.transact((tx) => tx.work.release(lease, { cookie: null, ...waiting }));
        await store.takeOverWork(now);
        const all = await store.claimWork({ ...claim, limit: 10 });
        expect(all.map(({ resourceId }) => resourceId).sort()).toEqual(store.isShared ? [] : ['a', 'b', 'c']);
        // An earlier create may still show up: its step waits again.
        for (const one of all)
          expect(one).toMatchObject({ attempt: expect.any(Number), waitedAttempt: null, lastError: null });
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

    it('keeps cordons in order of start, and forgets those that are over [store-cordons]', async () => {
      const base = {
        kind: 'region',
        name: 'here',
        platform: null,
        reason: null,
        by: 'ann',
        refusals: null,
      } as const;
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

    describeAlarms(() => store, now);

    describeOperators(() => store, now);
    describeFigures(() => store);

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
          ...{ progress: null, waitedAttempt: null, isHeld: false, waitsSince: now, leaseUntil: now + 1000 },
        },
      ]);
    });

    describeInstances(() => store);
    describeClaims(() => store);
    describeAccounts(() => store);
  });
}
