import { expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import { account, instance, volume } from '../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { audit } from '../../operator-kit/audit.ts';
import type { Log } from '../../ports/log.ts';
import type { Store } from '../model/store.ts';
import { Housekeeping, pruneTombstones } from './housekeeping.ts';

const ROUND_MS = 10_000;
const KEPT_MS = 60_000;

it('housekeeping stopped in the middle of a round begins no other', async () => {
  const clock = new VirtualClock();
  const round = Promise.withResolvers<void>();
  const authenticator = { recordUses: () => round.promise };
  const store = { transact: async () => undefined } as unknown as Store;
  const pruning = {
    alarms: unstoredAlarms(clock),
    tombstonesKeptMs: 0,
    historyKeptMs: 0,
    auditKeptMs: 0,
    prunable: () => new Map(),
  };
  const deps = { store, clock, log: {} as Log, authenticators: [authenticator], ...pruning };
  const housekeeping = new Housekeeping(deps);
  housekeeping.start();
  await clock.advance(60_000);
  const stopped = housekeeping.stop();
  round.resolve();
  await stopped;
  await clock.advance(0);
  expect(clock.pendingTimers).toBe(0);
});

it('does not prune a volume created by a clock that was ahead: the mark would pass future rows', async () => {
  const store = await openTestStore();
  const endedBefore = 1_000_000;
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    for (const createdAt of [endedBefore - 10, endedBefore + 60_000])
      await tx.volumes.insert(
        volume(`vol-${createdAt}`, { status: 'DELETING', deletedAt: endedBefore - 1, createdAt }),
      );
  });
  await pruneTombstones(store, 'default', endedBefore);
  expect(await store.read.marks.get('volumes_pruned_until')).toBe(endedBefore - 10);
});

it('prunes tombstones in small batches once they are old, and notes the newest creation among them', async () => {
  const store = await openTestStore();
  const clock = new VirtualClock();
  const endedAt = clock.now();
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    for (let n = 1; n <= 150; n++)
      await tx.instances.insert(
        instance(`i${n}`, {
          status: 'DESTROYED',
          createdAt: endedAt - n,
          updatedAt: endedAt - n,
          createOpenUntil: null,
        }),
      );
  });
  const stepped = { instanceId: 'i1', cause: 'stop', attempt: 1, next: 'finish', detail: null } as const;
  await store.transact((tx) =>
    tx.history.step({ ...stepped, at: endedAt, calls: [], console: null, tookMs: 1 }, 'row'),
  );
  const actor = { name: 'ann', source: 'cli', address: null } as const;
  await store.transact((tx) => audit(tx, { now: () => endedAt }, actor, { action: 'test' }));
  const audited = async () => (await store.read.audit.page({ limit: 10 })).length;
  const history = async () => (await store.read.history.of('i1')).length;
  let searchedUntil = Number.POSITIVE_INFINITY;
  const log = { error: (fields: object) => expect(fields).toBeUndefined() } as unknown as Log;
  const housekeeping = new Housekeeping({
    store,
    clock,
    log,
    alarms: unstoredAlarms(clock),
    authenticators: [],
    tombstonesKeptMs: KEPT_MS,
    historyKeptMs: KEPT_MS,
    auditKeptMs: KEPT_MS,
    prunable: () => new Map([['default', searchedUntil]]),
  });
  const left = async (): Promise<number[]> => {
    await housekeeping.run();
    const found = await Promise.all(
      Array.from({ length: 150 }, (_, index) => store.read.instances.byId(`i${index + 1}`)),
    );
    return found.flatMap((row, index) => (row === null ? [] : [index + 1]));
  };
  const until = () => store.read.marks.get('instances_pruned_until');
  expect(await left()).toHaveLength(150);
  expect([await history(), await audited()]).toEqual([1, 1]);
  await clock.advance(KEPT_MS - 100);
  expect(await left()).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  expect(await until()).toBe(endedAt - 101);
  await clock.advance(ROUND_MS);
  searchedUntil = endedAt - 500;
  expect(await left()).toHaveLength(100);
  searchedUntil = Number.POSITIVE_INFINITY;
  expect(await left()).toEqual([]);
  expect([await history(), await audited()]).toEqual([0, 0]);
  expect(await until()).toBe(endedAt - 1);
});
