import { beforeEach, describe, expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import { silentLog } from '../../../test/support/doubles/log.ts';
import { PlainPlatform } from '../../../test/support/doubles/plain-platform.ts';
import { withFaults } from '../../../test/support/faulty-driver.ts';
import { account, anOrder, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { machineSpec } from '../../drivers/simulator/simulator.fixture.ts';
import type { ObservedMachine } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import { putInstanceWork } from '../model/rows.ts';
import type { Store } from '../model/store.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { ExpectedMachines } from '../platform/expected-machines.ts';
import { Sightings } from '../platform/sightings.ts';
import { MachineSweep } from './sweep-machines.ts';

const NEVER = null;
const GRACE_MS = 60_000;
const ID = `inst-${'1'.repeat(32)}`;
const REF = `berth-${ID}`;
/** The note names this installation, but has too few fields for a row. */
const PARTIAL = JSON.stringify({ installation: 'here', id: ID });

const wholeNote = (changes: object = {}) =>
  JSON.stringify({
    installation: 'here',
    kind: 'instance',
    id: ID,
    accountId: account.id,
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
    ...changes,
  });

let clock: VirtualClock;
let store: Store;
beforeEach(async () => {
  clock = new VirtualClock(Date.UTC(2026, 10, 21));
  store = await openTestStore();
  await store.transact((tx) => tx.credentials.insertAccount(account));
});

interface Setting {
  note?: string;
  ageMs?: number;
  ref?: string;
  row?: Partial<InstanceRecord>;
}

/** A sweep over a platform with one machine without a live row. By default it is as old as the grace period. */
async function setUp({ note = PARTIAL, ageMs = GRACE_MS, ref = REF, row }: Setting = {}) {
  const platform = new PlainPlatform(clock);
  await platform.driver.create(machineSpec({ ref, note }), null);
  platform.change(ref, { createdAt: clock.now() - ageMs });
  if (row !== undefined)
    await store.transact((tx) =>
      tx.instances.insert(instance(ID, { status: 'ERROR', updatedAt: clock.now() - 1, ...row })),
    );
  const alarms = unstoredAlarms(clock);
  const driver = withFaults(platform.driver, () => 'none');
  const none = () => undefined;
  const options = {
    ...{ orphanGraceMs: GRACE_MS, callTimeoutMs: 1_000, leaseMs: 4_000 },
    ...{ restoreDoubtMs: 600_000, watchIntervalMs: 1_000 },
  };
  const sightings = new Sightings({ store, clock, platform: 'default', options });
  sightings.hasNone('volume');
  const expected = new ExpectedMachines(store, 'default');
  await expected.refresh();
  const context = {
    ...{ driver, clock, store, alarms, sightings, options, platform: 'default', installationId: 'here' },
    otherPlatforms: new Set(),
    failpoint: none,
    machines: {
      confirmAbsent: async (absence: string) => (platform.machines.has(absence) ? 'it is listed' : undefined),
    },
    probe: { probe: async () => ({ ok: false, step: 'connect', detail: 'refused' }) },
    health: { isUp: true },
    log: silentLog,
  } as unknown as ReconcileContext;
  const sweep = new MachineSweep(context, expected, () => false);
  const listing = async ({
    isListed = true,
    isTrusted = true,
    silent = [] as string[],
    host = undefined as string | undefined,
  } = {}): Promise<void> => {
    const machines = isListed ? [...platform.machines.values()] : [];
    const shown = machines.map((machine) => (host === undefined ? machine : { ...machine, host }));
    await sweep.sweep({
      items: new Map(shown.map((machine): [string, ObservedMachine] => [machine.ref, machine])),
      ...{ begunAt: clock.now(), copies: [], leftovers: [] },
      ...{ isTrusted, isComplete: isTrusted && silent.length === 0 },
      hosts: { answered: 'all', silent: new Set(silent) },
    });
    // Lets the policy's calls run, since the sweep does not wait for them.
    await clock.advance(0);
  };
  return {
    ...{ platform, sightings, listing },
    standing: () => alarms.listOpen().map(({ kind, subject }) => `${kind} ${subject}`),
    orders: () => driver.calls.map(({ method }) => method).filter((method) => method !== 'get'),
    workOf: async (id: string) => (await store.read.work.of(id))?.kind,
  };
}

describe('a machine that cannot be adopted', () => {
  it('is an alarm after two listings have shown it, and stays', async () => {
    const { listing, orders, standing, workOf } = await setUp();
    await listing();
    expect(standing()).toEqual([`row_lost ${REF}`]);
    for (let seen = 0; seen < 5; seen++) await listing();
    expect(standing()).toEqual([`row_lost ${REF}`, `orphan_machine ${REF}`]);
    expect([orders(), await workOf(REF)]).toEqual([[], undefined]);
  });

  it('is none while it is younger than the grace', async () => {
    const { listing, standing } = await setUp({ ageMs: 0 });
    await listing();
    await clock.advance(GRACE_MS - 1);
    await listing();
    expect(standing()).toEqual([`row_lost ${REF}`]);
    await clock.advance(1);
    await listing();
    expect(standing()).toContain(`orphan_machine ${REF}`);
  });

  it('must be shown twice again after a listing without it', async () => {
    const { listing, standing } = await setUp();
    await listing();
    await listing({ isListed: false });
    await listing();
    expect(standing()).not.toContain(`orphan_machine ${REF}`);
    await listing();
    expect(standing()).toContain(`orphan_machine ${REF}`);
  });

  it.each([
    ['another installation made', JSON.stringify({ installation: 'there', id: ID }), []],
    ['has no note of ours', 'made by hand', [`orphan_machine ${REF}`]],
    ['has a whole note of an account that is not there', wholeNote({ accountId: 'x' }), [`row_lost ${REF}`]],
  ])('that %s', async (_name, note, expected) => {
    const { listing, standing, workOf } = await setUp({ note });
    for (let seen = 0; seen < 2; seen++) await listing();
    expect([standing(), await workOf(REF)]).toEqual([expected, undefined]);
  });

  it('is none in a restored database: its row may have been lost', async () => {
    const { listing, standing, sightings } = await setUp();
    sightings.isRestored = true;
    for (let seen = 0; seen < 5; seen++) await listing();
    expect(standing()).toEqual([`row_lost ${REF}`]);
  });

  it.each(['ERROR', 'OFFLINE'] as const)(
    'is only an alarm if its instance is %s without a delete request',
    async (status) => {
      const { listing, orders, standing, workOf } = await setUp({ row: { status } });
      for (let seen = 0; seen < 5; seen++) await listing();
      expect([orders(), standing(), await workOf(ID)]).toEqual([[], [`orphan_machine ${REF}`], undefined]);
    },
  );

  it('was created before rows that were pruned: it is an alarm, and reads 503', async () => {
    await store.transact((tx) => tx.marks.put('instances_pruned_until', 1));
    const { listing, standing, sightings } = await setUp({ note: wholeNote() });
    for (let seen = 0; seen < 5; seen++) await listing();
    expect([standing(), sightings.searchedUntil]).toEqual([[`row_lost ${REF}`], NEVER]);
    expect(await store.read.sightings.hasNoRow(ID)).toBe(true);
    expect(await store.read.instances.byId(ID)).toBeNull();
  });
});

it('a machine with a whole note gets its row again', async () => {
  const { listing, standing, sightings } = await setUp({ note: wholeNote() });
  await listing();
  expect(await store.read.instances.byId(ID)).toMatchObject({ status: 'PROVISIONING', ownerRef: REF });
  expect(standing()).toEqual([]);
  await listing();
  expect(sightings.searchedUntil).toBe(clock.now());
});

it('the remains of a deleted instance are removed once two listings show them', async () => {
  const { listing, workOf } = await setUp({ row: { status: 'DESTROYED', destroyOrder: anOrder } });
  await listing();
  expect(await workOf(ID)).toBeUndefined();
  await clock.advance(1);
  await listing();
  expect(await workOf(ID)).toBe('destroy');
});

it('a machine whose removal is in progress is left alone [orphan-under-clean-up]', async () => {
  const row = { status: 'ERROR', destroyOrder: anOrder } as const;
  const { listing, orders, standing } = await setUp({ row });
  const work = { resourceId: ID, resourceKind: 'instance', kind: 'destroy', cookie: 'under way' } as const;
  await store.transact((tx) => tx.work.put({ ...work, notBefore: clock.now(), deadlineAt: null }));
  for (let seen = 0; seen < 5; seen++) await listing();
  expect([orders(), standing()]).toEqual([[], []]);
  expect(await store.read.work.of(ID)).toMatchObject({ cookie: 'under way' });
});

it.each([
  ['whose disks are still kept', true, 'renamed'],
  ['that was removed, and is listed late', false, 'n1'],
])(
  'a deleted instance %s has the host that its machine is listed on only while its removal is open [destroyed-host-renamed]',
  async (_what, isOpen, host) => {
    const row = { status: 'DESTROYED', destroyOrder: anOrder, host: 'n1' } as const;
    const { listing } = await setUp({ row });
    const work = { resourceId: ID, resourceKind: 'instance', kind: 'destroy', deadlineAt: null } as const;
    await store.transact(async (tx) => {
      await tx.losses.add({ instanceId: ID, at: clock.now() });
      if (isOpen) await tx.work.put({ ...work, notBefore: clock.now() + 60_000 });
    });
    await listing({ host: 'renamed' });
    expect(await store.read.instances.byId(ID)).toMatchObject({ status: 'DESTROYED', host });
  },
);

it('the remains of an earlier attempt are removed under an order that names the attempt; the newest stays', async () => {
  const { listing, workOf } = await setUp({ row: { status: 'ONLINE', ownerRef: `${REF}-g1` } });
  await listing();
  await listing();
  expect(await workOf(REF)).toBe('destroy');
  expect(await workOf(ID)).toBeUndefined();
  expect(await store.read.attempts.byRef(REF)).toMatchObject({
    resourceId: ID,
    closedAt: null,
    destroyOrder: { reason: 'failed_create' },
  });
});

it.each([
  ['whose own is gone', 'ONLINE', undefined, false, '-g2'],
  ['that no tenant has used', 'PROVISIONING', 'create', true, '-g2'],
  ['whose own may have a tenant on it', 'ONLINE', undefined, true, ''],
  ['that was ONLINE before the restore before', 'PROVISIONING', 'verify', true, ''],
] as const)(
  'of a later attempt and the row of a restored backup %s, the machine is the right one',
  async (_what, status, kind, isThere, suffix) => {
    const { listing, platform, standing } = await setUp({ ref: `${REF}-g2`, row: { status, ownerRef: REF } });
    if (isThere) await platform.driver.create(machineSpec({ ref: REF }), null);
    if (kind !== undefined) await store.transact((tx) => putInstanceWork(tx, ID, kind, clock.now()));
    await listing();
    expect(await store.read.instances.byId(ID)).toMatchObject({ ownerRef: `${REF}${suffix}` });
    expect(await store.read.attempts.byRef(REF)).toEqual(
      suffix === '' ? null : expect.objectContaining({ closedAt: null }),
    );
    expect(standing()).toEqual(suffix === '' ? [`orphan_machine ${REF}-g2`] : []);
  },
);

it('a machine without a row stays known while a listing leaves it out, until it is proved gone', async () => {
  const { listing, platform, sightings } = await setUp();
  await listing();
  await listing({ isListed: false });
  expect(await store.read.sightings.hasNoRow(ID)).toBe(true);
  expect(sightings.searchedUntil).toBe(NEVER);
  platform.lose(REF);
  await listing({ isTrusted: false });
  expect(await store.read.sightings.hasNoRow(ID)).toBe(true);
  await listing();
  expect(await store.read.sightings.hasNoRow(ID)).toBe(false);
  expect(sightings.searchedUntil).toBe(clock.now());
});

it('a machine without a row has one once an operator has made it a new instance', async () => {
  await store.transact((tx) => tx.marks.put('instances_pruned_until', 1));
  const { listing, standing, sightings } = await setUp({ note: wholeNote() });
  await listing();
  expect(standing()).toEqual([`row_lost ${REF}`]);
  const adopted = instance('inst-new', { status: 'ONLINE', ownerRef: REF });
  await store.transact((tx) => tx.instances.insert(adopted));
  await listing();
  expect([standing(), sightings.searchedUntil]).toEqual([[], expect.any(Number)]);
  expect(await store.read.sightings.hasNoRow(ID)).toBe(false);
});

it('a machine without a row is known after a restart, before the first listing', async () => {
  const { listing } = await setUp();
  await listing();
  const options = { restoreDoubtMs: 600_000 };
  const sightings = new Sightings({ store, clock, platform: 'default', options });
  await sightings.load();
  expect(sightings.withoutRow('instance')).toMatchObject([{ ref: REF, resourceId: ID }]);
});

it('no tombstone is pruned before two complete listings that began after its end [prune-after-sweep]', async () => {
  const { listing, platform, sightings } = await setUp();
  platform.lose(REF);
  expect(sightings.searchedUntil).toBe(NEVER);
  await listing({ silent: ['a host'] });
  const firstAt = clock.now();
  await listing();
  expect(sightings.searchedUntil).toBe(NEVER);
  await clock.advance(1);
  await listing({ silent: ['a host'] });
  expect(sightings.searchedUntil).toBe(NEVER);
  await listing();
  expect(sightings.searchedUntil).toBe(firstAt);
});

it('an orphan is an alarm until it is not listed any more, by all hosts [orphan-alarm]', async () => {
  const { listing, standing } = await setUp({ row: { status: 'ERROR' } });
  await listing();
  await listing();
  expect(standing()).toEqual([`orphan_machine ${REF}`]);
  await listing({ isListed: false, silent: ['a host'] });
  expect(standing()).toEqual([`orphan_machine ${REF}`]);
  await listing({ isListed: false });
  expect(standing()).toEqual([]);
});
