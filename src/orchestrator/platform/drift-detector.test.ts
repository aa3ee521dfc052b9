import { expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/alarms.ts';
import { VirtualClock } from '../../../test/support/clocks/virtual-clock.ts';
import { instance } from '../../store/records.fixture.ts';
import type { CommitListener, Store } from '../model/store.ts';
import type { ReconcileContext } from './context.ts';
import { DriftDetector } from './drift-detector.ts';
import { ExpectedMachines } from './expected-machines.ts';
import { RunningEndpoints } from './running-endpoints.ts';

/** An ONLINE row whose machine the platform does not list, and a transaction that finds it destroyed. */
function setUp(
  { isCommitted }: { isCommitted: boolean },
  refresh: () => Promise<void> = async () => undefined,
) {
  const clock = new VirtualClock();
  const row = { ...instance('a'), status: 'ONLINE' as const, updatedAt: clock.now() - 1, host: 'n3' };
  const silentHosts = new Set<string>();
  let transactions = 0;
  let listener: CommitListener = {};
  const none = () => undefined;
  const store = {
    read: { instances: { livePage: async () => [row] }, marks: { get: async () => null } },
    isCommitFeedLive: () => true,
    subscribe: (subscribed: CommitListener) => {
      listener = subscribed;
      return none;
    },
    transact: async (body: (tx: unknown) => Promise<unknown>) => {
      transactions++;
      const result = await body({ instances: { byId: async () => ({ ...row, status: 'DESTROYED' }) } });
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
          begunAt: clock.now(),
          hosts: { answered: new Set(['n3'].filter((host) => !silentHosts.has(host))), silent: silentHosts },
        }),
      },
      inventory: { refresh },
      volumes: undefined,
      options: { leaseMs: 30_000, watchIntervalMs: 5_000 },
      driver: { manifest: { createVisibleWithinMs: 0 } },
      notFoundGuard: { sweptWithoutRow: none },
      log: { debug: none, info: none, warn: none, error: none },
    } as unknown as ReconcileContext,
    expected,
  );
  return {
    detector,
    expected,
    row,
    silentHosts,
    tell: () => listener.instancesChanged?.([row]),
    transactions: () => transactions,
  };
}

it('forgets a row that a transaction found destroyed', async () => {
  const { detector, expected, row, tell } = setUp({ isCommitted: true });
  await expected.refresh();
  await detector.observe();
  tell();
  expect(expected.get(row.ownerRef)).toBeUndefined();
});

it('and keeps one where that transaction was taken back [forgets-after-its-commit]', async () => {
  const { detector, expected, row } = setUp({ isCommitted: false });
  await expected.refresh();
  await detector.observe();
  expect(expected.get(row.ownerRef)).toMatchObject({ id: row.id });
});

it('asks nothing about a machine whose host does not answer', async () => {
  const { detector, expected, silentHosts, transactions } = setUp({ isCommitted: true });
  await expected.refresh();
  silentHosts.add('n3');
  await detector.observe();
  expect(transactions()).toBe(0);
  silentHosts.clear();
  await detector.observe();
  expect(transactions()).toBe(1);
});

it('goes on while the free units are being counted, and counts once at a time', async () => {
  const counts: (() => void)[] = [];
  const { detector, expected, transactions } = setUp({ isCommitted: false }, () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    counts.push(resolve);
    return promise;
  });
  await expected.refresh();
  await detector.observe();
  await detector.observe();
  expect([transactions(), counts.length]).toEqual([2, 1]);
  counts[0]?.();
  await detector.observe();
  expect(counts.length).toBe(2);
  counts[1]?.();
  await detector.stop();
});
