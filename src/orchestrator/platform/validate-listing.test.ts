import { beforeEach, describe, expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import { instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Store } from '../model/store.ts';
import { ExpectedMachines } from './expected-machines.ts';
import { Sightings } from './sightings.ts';
import { judgeMachines, judgeVolumes, whySuspect } from './validate-listing.ts';

it.each([
  { missing: 0, expected: 0, why: undefined },
  { missing: 0, expected: 5, why: undefined },
  { missing: 1, expected: 1, why: 'all' },
  { missing: 2, expected: 2, why: 'all' },
  { missing: 2, expected: 3, why: undefined },
  { missing: 3, expected: 3, why: 'many' },
  { missing: 3, expected: 5, why: 'many' },
  { missing: 3, expected: 6, why: undefined },
  { missing: 50, expected: 100, why: undefined },
  { missing: 51, expected: 100, why: 'many' },
])('a listing without $missing of $expected machines is suspect: $why', ({ why, ...held }) => {
  expect(whySuspect(held)).toBe(why);
});

it('a listing without any machine of a host is accepted if that host did not answer; a host unknown to the platform raises an alarm [host-unknown]', async () => {
  const clock = new VirtualClock();
  const updatedAt = clock.now() - 1;
  let acceptedUntil: number | null = null;
  const rows = ['a', 'b', 'c', 'd'].map((id) => ({
    ...instance(id),
    status: 'ONLINE' as const,
    updatedAt,
    host: id === 'd' ? 'n1' : 'n3',
  }));
  const store = {
    read: {
      instances: { livePage: async () => rows },
      marks: { get: async () => acceptedUntil },
    },
    transact: async () => undefined,
    isCommitFeedLive: () => true,
    subscribe: () => () => undefined,
  } as unknown as Store;
  const health = {
    isUp: false,
    answered: async () => {
      health.isUp = true;
    },
    reportProblem: async () => undefined,
  };
  const warnings: object[] = [];
  const alarms = unstoredAlarms(clock);
  const deps = {
    store,
    clock,
    health,
    alarms,
    log: {
      warn: (fields: object) => void warnings.push(fields),
      info: () => undefined,
      error: () => undefined,
    },
    platform: 'default',
    options: { leaseMs: 30_000, emptyForMs: 600_000 },
    sightings: new Sightings({ store, clock, platform: 'default', options: { restoreDoubtMs: 0 } }),
    driver: { manifest: { createVisibleWithinMs: 0 } },
  } as unknown as Parameters<typeof judgeMachines>[0];
  const judge = judgeMachines(deps, new ExpectedMachines(store, 'default'));
  const items = rows.slice(3).map(({ ownerRef: ref }) => ({ ref, power: 'running' as const, createdAt: 0 }));
  const isTrusted = (answered: string[], silent: string[]) =>
    judge({ answer: 'listed', items, hosts: { answered, silent } }, clock.now());
  expect(await isTrusted(['n1', 'n3'], ['n2'])).toBe(false);
  expect(await isTrusted(['n1', 'n2'], ['n3'])).toBe(true);
  await isTrusted(['n1', 'n2'], ['n3']);
  expect(warnings).toEqual([{ hosts: 'n2' }, { hosts: 'n3' }]);
  expect(alarms.listOpen()).toEqual([]);
  expect(await isTrusted(['n1', 'n2'], [])).toBe(true);
  expect(alarms.listOpen()).toMatchObject([{ kind: 'host_unknown', subject: 'default/n3' }]);
  acceptedUntil = clock.now() + 1_000;
  expect(await isTrusted(['n1', 'n2'], [])).toBe(true);
  expect(alarms.listOpen()).toEqual([]);
  acceptedUntil = null;
  await isTrusted(['n1', 'n2'], []);
  expect(await isTrusted(['n1', 'n2', 'n3'], [])).toBe(false);
  expect(alarms.listOpen()).toEqual([]);
});

describe('a listing without three of four volumes whose deletion was not requested', () => {
  const HOUR_MS = 60 * 60_000;
  const marks = new Map<string, number>();
  const alarms: string[] = [];
  let now = 0;
  let judge: (...refs: string[]) => Promise<boolean>;

  beforeEach(async () => {
    marks.clear();
    alarms.length = 0;
    now = 1_000;
    const tx = {
      marks: {
        put: async (name: string, at: number) => marks.set(name, at),
        remove: async (name: string) => marks.delete(name),
        get: async (name: string) => marks.get(name) ?? null,
      },
    };
    const deps = {
      platform: 'default',
      store: {
        read: { ...tx, volumes: { byOwnerRef: async () => ({ status: 'AVAILABLE' }) } },
        transact: (body: (given: typeof tx) => unknown) => body(tx),
      },
      health: { isUp: true },
      clock: { now: () => now },
      alarms: unstoredAlarms({ now: () => now }),
      log: { error: (_: object, message: string) => void alarms.push(message) },
    } as unknown as Parameters<typeof judgeVolumes>[0];
    const judging = judgeVolumes(deps);
    judge = (...refs) => {
      const items = refs.map((ref) => ({ ref, attachedTo: [], createdAt: 0 }));
      return judging({ answer: 'listed', items }, now);
    };
    await judge('a', 'b', 'c', 'd');
  });

  it('is not accepted, with one alarm that names the remedy', async () => {
    expect([await judge('a'), await judge('a')]).toEqual([false, false]);
    expect(alarms).toEqual([expect.stringContaining('berth losses accept')]);
    expect(marks.get('volumes_doubted_since')).toBe(1_000);
  });

  it('is accepted when losses are accepted, and when the volumes are back', async () => {
    await judge('a');
    marks.set('losses_accepted_until', now + 1);
    expect([await judge('a'), marks.has('volumes_doubted_since')]).toEqual([true, false]);
    await judge('a', 'b', 'c', 'd');
    marks.clear();
    await judge('a');
    expect(await judge('a', 'b', 'c', 'd')).toBe(true);
    expect(marks.has('volumes_doubted_since')).toBe(false);
  });

  it('is accepted after an hour without the volumes', async () => {
    await judge('a');
    now += HOUR_MS - 1;
    expect(await judge('a')).toBe(false);
    now += 1;
    expect([await judge('a'), await judge('a')]).toEqual([true, true]);
    expect(marks.has('volumes_doubted_since')).toBe(false);
  });
});
