import { expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import { silentLog } from '../../../test/support/doubles/log.ts';
import { instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { CommitListener, Store } from '../model/store.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { ExpectedMachines } from '../platform/expected-machines.ts';
import { RestoreHold, RunningEndpoints, Sightings } from '../platform/sightings.ts';
import { DriftDetector } from './drift-detector.ts';

/** An ONLINE row whose machine is not listed, and a store in which a transaction finds the row destroyed. */
function setUp(
  { isCommitted }: { isCommitted: boolean },
  refresh: () => Promise<void> = async () => undefined,
) {
  const clock = new VirtualClock();
  const row = { ...instance('a'), status: 'ONLINE' as const, updatedAt: clock.now() - 1, host: 'n3' };
  const silentHosts = new Set<string>();
  let reads = 0;
  let listener: CommitListener = {};
  const none = () => undefined;
  const store = {
    read: {
      instances: { livePage: async () => [row] },
      marks: { get: async () => null },
      sightings: { list: async () => [] },
    },
    isCommitFeedLive: () => true,
    subscribe: (subscribed: CommitListener) => {
      listener = subscribed;
      return none;
    },
    transact: async (body: (tx: unknown) => Promise<unknown>) => {
      const result = await body({
        instances: {
          byId: async () => {
            reads++;
            return { ...row, status: 'DESTROYED' };
          },
        },
        sightings: { putListing: async () => undefined },
      });
      if (!isCommitted) throw new Error('the transactions were taken back together');
      return result;
    },
  } as unknown as Store;
  const expected = new ExpectedMachines(store, 'default');
  const detector = new DriftDetector(
    {
      store,
      clock,
      alarms: unstoredAlarms(clock),
      endpoints: new RunningEndpoints(),
      machines: {
        observe: async () => ({
          items: new Map(),
          isTrusted: true,
          begunAt: clock.now(),
          hosts: { answered: new Set(['n3'].filter((host) => !silentHosts.has(host))), silent: silentHosts },
        }),
      },
      inventory: { refresh },
      volumes: undefined,
      options: { leaseMs: 30_000, watchIntervalMs: 5_000 },
      driver: { manifest: { createVisibleWithinMs: 0 } },
      sightings: new Sightings({ store, clock, platform: 'default', options: { restoreDoubtMs: 0 } }),
      restoreHold: new RestoreHold(),
      log: silentLog,
    } as unknown as ReconcileContext,
    expected,
    none,
  );
  return {
    detector,
    expected,
    row,
    silentHosts,
    commit: () => listener.instancesChanged?.([row]),
    reads: () => reads,
  };
}

it('forgets a row that a transaction found destroyed', async () => {
  const { detector, expected, row, commit } = setUp({ isCommitted: true });
  await expected.refresh();
  await detector.observe();
  commit();
  expect(expected.get(row.ownerRef)).toBeUndefined();
});

it('keeps a row if that transaction was rolled back [forgets-after-its-commit]', async () => {
  const { detector, expected, row } = setUp({ isCommitted: false });
  await expected.refresh();
  await detector.observe();
  expect(expected.get(row.ownerRef)).toMatchObject({ id: row.id });
});

it('asks nothing about a machine whose host does not answer', async () => {
  const { detector, expected, silentHosts, reads } = setUp({ isCommitted: true });
  await expected.refresh();
  silentHosts.add('n3');
  await detector.observe();
  expect(reads()).toBe(0);
  silentHosts.clear();
  await detector.observe();
  expect(reads()).toBe(1);
});

it('continues while the free units are being counted, with one count at a time', async () => {
  const counts: (() => void)[] = [];
  const { detector, expected, reads } = setUp({ isCommitted: false }, () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    counts.push(resolve);
    return promise;
  });
  await expected.refresh();
  await detector.observe();
  await detector.observe();
  expect([reads(), counts.length]).toEqual([2, 1]);
  counts[0]?.();
  await detector.observe();
  expect(counts.length).toBe(2);
  counts[1]?.();
  await detector.stop();
});
