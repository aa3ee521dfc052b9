import { expect, it } from 'vitest';
import { instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { CREATE_IS_OPEN } from '../model/platform-resource.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { CommitListener, Store } from '../model/store.ts';
import { changedBefore, ExpectedMachines, isExpected } from './expected-machines.ts';

/** A store that implements only the commit feed and the live rows. */
function setUp(...rows: InstanceRecord[]) {
  let listener: CommitListener = {};
  const state = { rows, reads: 0, isFeedLive: true };
  const store = {
    read: {
      instances: {
        livePage: async () => {
          state.reads++;
          return state.rows;
        },
      },
    },
    isCommitFeedLive: () => state.isFeedLive,
    subscribe: (subscribed: CommitListener) => {
      listener = subscribed;
      return () => undefined;
    },
  } as unknown as Store;
  const machines = new ExpectedMachines(store, 'default');
  return {
    machines,
    state,
    commit: (...records: InstanceRecord[]) => listener.instancesChanged?.(records),
    missCommits: () => listener.commitsMissed?.(),
    expected: () => [...machines.entries()].map(([, { id, version }]) => `${id}.${version}`).sort(),
  };
}

const row = (id: string, version: number, status: InstanceRecord['status'] = 'ONLINE') => ({
  ...instance(id),
  version,
  status,
});

it('reads every live row once, then follows notifications', async () => {
  const { machines, state, commit, expected } = setUp(row('a', 1), row('b', 1));
  await machines.refresh();
  commit(row('a', 2), row('b', 2, 'DESTROYED'), row('c', 1));
  await machines.refresh();
  expect([expected(), state.reads]).toEqual([['a.2', 'c.1'], 1]);
});

it('takes the newer of two copies, in any order of notification', async () => {
  const { machines, commit, expected } = setUp();
  await machines.refresh();
  commit(row('a', 3));
  commit(row('a', 2));
  expect(expected()).toEqual(['a.3']);
});

it('reads them again after missed commits, and forgets those destroyed since', async () => {
  const { machines, state, missCommits, expected } = setUp(row('a', 1), row('b', 1));
  await machines.refresh();
  state.rows = [row('b', 4)];
  missCommits();
  await machines.refresh();
  expect([expected(), state.reads]).toEqual([['b.4'], 2]);
});

it('does not bring back a destroyed machine on a late notification of an older commit', async () => {
  const { machines, commit, state, missCommits, expected } = setUp(row('a', 1), row('b', 1), row('c', 1));
  await machines.refresh();
  commit({ ...row('a', 5), status: 'DESTROYED' });
  commit(row('a', 4));
  state.rows = [row('c', 1)];
  missCommits();
  await machines.refresh();
  commit(row('b', 2));
  machines.forget('berth-c');
  commit(row('c', 2));
  expect(expected()).toEqual([]);
});

it('expects the machine of a destroyed row again once an operator has adopted it as a new instance', async () => {
  const { machines, commit, expected } = setUp(row('a', 1));
  await machines.refresh();
  commit({ ...row('a', 5), status: 'DESTROYED' });
  commit({ ...row('z', 1), ownerRef: 'berth-a' });
  commit(row('a', 4));
  expect(expected()).toEqual(['z.1']);
});

it('reads them each time while commits do not arrive, and again after a failed read', async () => {
  const { machines, state, expected } = setUp(row('a', 1));
  state.isFeedLive = false;
  await machines.refresh();
  await machines.refresh();
  expect(state.reads).toBe(2);
  state.isFeedLive = true;
  const failing = setUp(row('a', 1));
  const { rows } = failing.state;
  Object.defineProperty(failing.state, 'rows', {
    configurable: true,
    get: () => {
      throw new Error('the store is away');
    },
  });
  await expect(failing.machines.refresh()).rejects.toThrow('away');
  Object.defineProperty(failing.state, 'rows', { value: rows });
  await failing.machines.refresh();
  expect([failing.expected(), expected()]).toEqual([['a.1'], ['a.1']]);
});

it.each([
  ['PROVISIONING', false],
  ['ONLINE', true],
  ['STOPPING', true],
  ['STOPPED', true],
  ['OFFLINE', false],
  ['DESTROYING', false],
  ['ERROR', false],
] as const)('a row that is %s, without an endpoint, is expected on the platform: %s', (status, expected) => {
  const { id, version } = row('a', 1);
  expect(
    isExpected({
      id,
      version,
      status,
      endpoint: null,
      since: 0,
      createOpenUntil: CREATE_IS_OPEN,
      host: null,
    }),
  ).toBe(expected);
});

it('a machine that was seen while it is PROVISIONING is expected [provisioning-machine-expected]', () => {
  const endpoint = { publicIp: '192.0.2.1', sshPort: 22, sshUsername: 'ubuntu' };
  expect(
    isExpected({
      id: 'a',
      version: 1,
      status: 'PROVISIONING',
      endpoint,
      since: 0,
      createOpenUntil: null,
      host: null,
    }),
  ).toBe(true);
});

it.each([
  ['before it began', 9_999, true],
  ['as it began', 10_000, false],
  ['within a lease of now', 41_000, false],
  ['in a future that no clock of ours has seen', 41_001, true],
])('a row that changed %s is held against the listing', (_name, since, isHeld) => {
  const context = { clock: new VirtualClock(11_000), options: { leaseMs: 30_000 } };
  expect(changedBefore(since, 10_000, context)).toBe(isHeld);
});
