import { beforeEach, describe, expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/alarms.ts';
import { VirtualClock } from '../../../test/support/clocks/virtual-clock.ts';
import { PlainPlatform } from '../../../test/support/fakes/plain-platform.ts';
import { withFaults } from '../../drivers/kit/faults.ts';
import { machineSpec } from '../../drivers/simulator/simulator.fixture.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { ReconcileContext } from './context.ts';
import { NotFoundGuard } from './not-found-guard.ts';
import type { ReconcileOptions } from './options.ts';
import { OrphanSweep } from './orphan-sweep.ts';

const GRACE_MS = 60_000;
const REF = 'berth-inst-stray';
const NOTE = JSON.stringify({ installation: 'here', id: 'inst-stray' });
const ID = `inst-${'1'.repeat(32)}`;
const WHOLE_NOTE = JSON.stringify({
  installation: 'here',
  kind: 'instance',
  id: ID,
  accountId: 'acct-1',
  name: null,
  offerId: 'offer',
  region: 'region',
  priceMicroUsdPerHour: 1,
  createdAt: 1,
  spec: {
    instanceType: 'SPOT',
    vcpus: 1,
    memoryGb: 1,
    storageGb: 1,
    image: 'image',
    sshKeys: [],
    onStop: 'release',
    resumable: true,
    onlineWithinMs: 1,
  },
});
const ORDERS = { log: [], stop: ['stop'], reap: ['destroy'] } as const;

let clock: VirtualClock;
beforeEach(() => {
  clock = new VirtualClock();
});

/** A sweep over a platform with one machine that no row owns, as old as the grace unless it is told otherwise. */
function setUp(
  orphans: ReconcileOptions['orphans'],
  {
    ageMs = GRACE_MS,
    note = NOTE,
    isRestored = false,
    isUnadopted = false,
    prunedUntil = null as number | null,
    keepsNotes = true,
    ref = REF,
    lost = null as 'ERROR' | 'OFFLINE' | null,
    hasWork = false,
  } = {},
) {
  const platform = new PlainPlatform(clock, { keepsNotes });
  void platform.driver.create(machineSpec({ ref, note }), null);
  platform.change(ref, { createdAt: clock.now() - ageMs });
  const standing = unstoredAlarms(clock);
  const driver = withFaults(platform.driver, () => 'none');
  const alarms: object[] = [];
  const none = () => undefined;
  const guard = new NotFoundGuard();
  for (const kind of ['instance', 'volume'] as const) guard.compared(kind, []);
  guard.sweptWithoutRow('volume', 0);
  if (isRestored) guard.restored();
  const written: InstanceRecord[] = [];
  const work: unknown[] = [];
  const sweep = new OrphanSweep(
    {
      ...{
        driver,
        clock,
        alarms: standing,
        platform: 'default',
        installationId: 'here',
        notFoundGuard: Object.assign(guard, { isUnadopted: () => isUnadopted }),
        failpoint: none,
      },
      store: {
        transact: async (body: (tx: unknown) => unknown) =>
          body({
            instances: {
              byId: async (id: string) => written.find((record) => record.id === id) ?? null,
              insert: async (record: InstanceRecord) => void written.push(record),
            },
            work: { put: async (put: unknown) => void work.push(put) },
          }),
        read: {
          marks: { get: async () => prunedUntil },
          instances: {
            byOwnerRef: async () => lost && { id: 'inst-lost', status: lost, platform: 'default' },
          },
          losses: { includes: async (id: string) => id === 'inst-lost' },
          work: { of: async () => (hasWork ? {} : null) },
        },
      },
      options: { orphans, orphanGraceMs: GRACE_MS, callTimeoutMs: 1_000 },
      health: { accepted: none, refused: none },
      log: { debug: none, info: none, warn: none, error: (fields: object) => void alarms.push(fields) },
    } as unknown as ReconcileContext,
    () => false,
  );
  return {
    platform,
    alarms,
    standing: () => standing.standing().map(({ subject }) => subject),
    written,
    work,
    guard,
    /** One listing, in which the machine is as the platform has it, or not. */
    async listing(isListed = true, ...silentHosts: string[]): Promise<void> {
      await sweep.sweep(isListed ? [...platform.machines.values()] : [], {
        begunAt: clock.now(),
        hosts: { answered: 'all', silent: new Set(silentHosts) },
      });
    },
    orders: () => driver.calls.map(({ method }) => method),
  };
}

describe.each(['log', 'stop', 'reap'] as const)('with orphans: %s, a machine without a row', (orphans) => {
  it('is acted on, and told of once, when it is seen again', async () => {
    const { listing, orders, alarms } = setUp(orphans);
    await listing();
    await listing();
    expect([orders(), alarms]).toEqual([ORDERS[orphans], [{ ref: REF, power: 'running', action: orphans }]]);
    await listing();
    expect(alarms).toHaveLength(1);
  });

  it('is left alone at first sight', async () => {
    const { listing, orders, alarms } = setUp(orphans);
    await listing();
    expect([orders(), alarms]).toEqual([[], []]);
  });

  it('is left alone while it is younger than the grace', async () => {
    const { listing, orders, alarms } = setUp(orphans, { ageMs: 0 });
    await listing();
    await clock.advance(GRACE_MS - 1);
    await listing();
    expect([orders(), alarms]).toEqual([[], []]);
    await clock.advance(1);
    await listing();
    expect([orders(), alarms.length]).toEqual([ORDERS[orphans], 1]);
  });

  it('that was away for a listing begins anew', async () => {
    const { listing, orders, alarms } = setUp(orphans);
    await listing();
    await listing(false);
    await listing();
    expect([orders(), alarms]).toEqual([[], []]);
    await listing();
    expect([orders(), alarms.length]).toEqual([ORDERS[orphans], 1]);
  });

  it.each([
    ['another Berth made', JSON.stringify({ installation: 'there', id: 'inst-stray' }), []],
    [
      'carries the note of another machine',
      JSON.stringify({ installation: 'here', id: 'inst-other' }),
      ['log'],
    ],
    ['carries no note of ours', 'made by hand', ['log']],
  ] as const)('and that %s is never touched', async (_name, note, told) => {
    const { listing, orders, alarms } = setUp(orphans, { note });
    for (let seen = 0; seen < 5; seen++) await listing();
    expect([orders(), alarms]).toEqual([[], told.map((action) => ({ ref: REF, power: 'running', action }))]);
  });

  it('is the operator’s to judge where the platform keeps no notes', async () => {
    const { listing, orders, alarms } = setUp(orphans, { keepsNotes: false });
    await listing();
    await listing();
    expect([orders(), alarms]).toEqual([ORDERS[orphans], [{ ref: REF, power: 'running', action: orphans }]]);
  });

  it.each([
    ['carries the whole note of an instance', { ref: `berth-${ID}`, note: WHOLE_NOTE }],
    ['recovery could not give its row', { isUnadopted: true }],
  ])('and that %s is a customer whose row was lost: it is only told of', async (_what, how) => {
    const { listing, orders, alarms } = setUp(orphans, how);
    for (let seen = 0; seen < 5; seen++) await listing();
    expect([orders(), alarms]).toEqual([[], [{ ref: expect.any(String), power: 'running', action: 'log' }]]);
  });

  it.each(['ERROR', 'OFFLINE'] as const)('of a lost instance that is %s meets the same', async (lost) => {
    const { listing, orders, alarms } = setUp(orphans, { ref: `berth-${ID}`, note: WHOLE_NOTE, lost });
    await listing();
    expect([orders(), alarms]).toEqual([[], []]);
    await listing();
    expect([orders(), alarms.length]).toEqual([ORDERS[orphans], 1]);
  });

  it('of a lost instance whose clean-up is under way is left to that [orphan-under-clean-up]', async () => {
    const { listing, orders, alarms } = setUp(orphans, { lost: 'ERROR', hasWork: true });
    for (let seen = 0; seen < 5; seen++) await listing();
    expect([orders(), alarms]).toEqual([[], []]);
  });

  it('whose tombstone was pruned is destroyed again, when it is seen again', async () => {
    const whole = { ref: `berth-${ID}`, note: WHOLE_NOTE };
    const { listing, orders, written, work, guard } = setUp(orphans, { ...whole, prunedUntil: 1 });
    await listing();
    expect([written, work]).toEqual([[], []]);
    for (let seen = 0; seen < 3; seen++) await listing();
    expect(written).toMatchObject([{ id: ID, status: 'DESTROYED', ownerRef: `berth-${ID}` }]);
    expect(work).toMatchObject([{ resourceId: ID, kind: 'destroy' }]);
    expect([orders(), guard.areRowsComplete]).toEqual([[], true]);
  });

  it('that is younger than any that was pruned is none of those, and none are pruned while it is there', async () => {
    const whole = { ref: `berth-${ID}`, note: WHOLE_NOTE };
    const { listing, written, guard } = setUp(orphans, { ...whole, prunedUntil: 0 });
    await listing(false);
    expect(guard.areRowsComplete).toBe(true);
    for (let seen = 0; seen < 3; seen++) await listing();
    expect([written, guard.areRowsComplete]).toEqual([[], false]);
    await listing(false);
    expect(guard.areRowsComplete).toBe(true);
  });

  it('is left alone in a database that was restored: its row may be what was lost', async () => {
    const { listing, orders, alarms } = setUp(orphans, { isRestored: true });
    for (let seen = 0; seen < 5; seen++) await listing();
    expect([orders(), alarms]).toEqual([[], []]);
  });
});

it('no tombstone is pruned before the first listing was searched for what has no row [prune-after-sweep]', async () => {
  const { listing, guard } = setUp('log');
  expect(guard.areRowsComplete).toBe(false);
  await listing(false);
  expect(guard.areRowsComplete).toBe(true);
});

it('is an alarm until it is not listed any more, by all hosts [orphan-alarm]', async () => {
  const { listing, standing } = setUp('log');
  await listing();
  await listing();
  expect(standing()).toEqual([REF]);
  await listing(false, 'host-that-is-silent');
  expect(standing()).toEqual([REF]);
  await listing(false);
  expect(standing()).toEqual([]);
});

it('log never calls the driver, however often it is seen', async () => {
  const { listing, orders } = setUp('log');
  for (let seen = 0; seen < 100; seen++) {
    await listing();
    await clock.advance(GRACE_MS);
  }
  expect(orders()).toEqual([]);
});

it('stop stops a machine once: one that is off stays as it is', async () => {
  const { listing, orders } = setUp('stop');
  for (let seen = 0; seen < 5; seen++) await listing();
  expect(orders()).toEqual(['stop']);
});
