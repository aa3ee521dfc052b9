import { expect, it } from 'vitest';
import type { MachineSpec, VolumeSpec } from '../orchestrator/model/platform-driver.ts';
import { createPlatform } from './platform.ts';
import type { MachineRecord } from './records.ts';
import type { PlatformRules, Ports, Range } from './rules.ts';

const draws = { durationMs: (_name: string, [, most]: Range) => most, happens: () => false };

const rulesOfTests: PlatformRules<MachineRecord> = {
  manifest: {
    name: 'simulator',
    stop: true,
    resume: true,
    restart: true,
    attachVolume: 'hot',
    resizeVolume: 'detached',
    createVisibleWithinMs: 0,
    keepsNotes: false,
    cloudInitBytes: 0,
  },
  durations: { boot: [10, 10], stop: [10, 10], start: [10, 10], restart: [10, 10], destroy: [10, 10] },
  units: () => 2,
  make: () => ({}),
  endpoint: () => undefined,
};

function platform(
  rules: Partial<PlatformRules<MachineRecord>> = {},
  ports: Partial<Ports<MachineRecord>> = {},
) {
  const clock = { at: 0, now: () => clock.at };
  const made = createPlatform({
    clock,
    rules: { ...rulesOfTests, ...rules },
    machineDraws: draws,
    volumeDraws: draws,
    ...ports,
  });
  return { ...made, clock };
}

function machine(ref: string, fields: Partial<MachineSpec> = {}): MachineSpec {
  const size = { vcpus: 1, memoryGb: 1, rootDiskGb: 1, gpuCount: 0, gpuType: undefined };
  const spec = { ref, offerId: 'cpu', datacenter: 'fra', hostname: 'h', image: 'i', ...size };
  return { ...spec, sshKeys: [], cloudInit: undefined, note: 'a note', ...fields };
}

const volume: VolumeSpec = { ref: 'vol', datacenter: 'fra', sizeGb: 10, type: 'single', note: 'a note' };

it('shows a machine when it becomes visible; a create before that makes a second one, and one that is late finds it', () => {
  let isLate = false;
  const { machines, clock } = platform({ hiddenUpToMs: () => 100, findsHidden: () => isLate });
  const begun = machines.create(machine('a'), null);
  expect([machines.get('a'), machines.list(), machines.of('a').length]).toEqual([{ answer: 'gone' }, [], 1]);
  expect(machines.create(machine('a'), null)).not.toEqual(begun);
  isLate = true;
  expect(machines.create(machine('a'), null)).toEqual(begun);
  clock.at = 100;
  expect(machines.list().map(({ ref, power }) => [ref, power])).toEqual([
    ['a', 'running'],
    ['a', 'running'],
  ]);
});

it('continues a create by its cookie, and answers gone when the machine is gone', () => {
  const { machines } = platform();
  const begun = machines.create(machine('a'), null);
  const cookie = begun.outcome === 'pending' ? begun.cookie : '';
  expect(machines.create(machine('a'), cookie)).toEqual(begun);
  for (const made of machines.of('a')) machines.remove(made, 'lost');
  expect(machines.create(machine('a'), cookie)).toMatchObject({ outcome: 'failed', code: 'gone' });
  expect(machines.all()).toEqual([]);
});

it('completes due work with the time at which it was due, even if it is read late', () => {
  const { machines, clock } = platform({ reapStoppedAfterMs: 50 });
  machines.create(machine('a'), null);
  clock.at = 10;
  machines.stop('a');
  clock.at = 69;
  expect(machines.get('a')).toMatchObject({ value: { power: 'stopped' } });
  clock.at = 70;
  expect(machines.get('a')).toEqual({ answer: 'gone' });
});

it('shows a restart as its rules say, and then runs again', () => {
  const { machines, clock } = platform({ restartPower: () => 'stopping' });
  machines.create(machine('a'), null);
  clock.at = 10;
  expect(machines.restart('a', 'one')).toMatchObject({ outcome: 'pending' });
  expect(machines.get('a')).toMatchObject({ value: { power: 'stopping' } });
  expect(machines.restart('a', 'two')).toMatchObject({ code: 'conflict' });
  clock.at = 20;
  expect(machines.restart('a', 'one')).toMatchObject({ outcome: 'done', value: { power: 'running' } });
  expect(machines.all()).toMatchObject([{ boots: 2, bootedAt: 20 }]);
});

it('does not read other machines to create, read, stop or destroy one', () => {
  const { machines, clock } = platform({ units: () => 10_000 });
  let reads = 0;
  const counted = (ref: string): MachineSpec =>
    Object.defineProperty(machine(ref), 'offerId', { get: () => ['cpu'][reads++ * 0], enumerable: true });
  const readsOf = (ref: string): number => {
    reads = 0;
    machines.create(counted(ref), null);
    clock.at += 10;
    machines.get(ref);
    machines.stop(ref);
    clock.at += 10;
    machines.destroy(ref);
    return reads;
  };
  const alone = readsOf('alone');
  for (let index = 0; index < 5_000; index++) machines.create(counted(`m-${index}`), null);
  clock.at += 10;
  expect(machines.all()).toHaveLength(5_001 - 1);
  expect([alone > 0, readsOf('beside-many')]).toEqual([true, alone]);
});

it('keeps its state when a write fails, and continues when writes work again', () => {
  let isFull = false;
  const write = () => {
    if (isFull) throw new Error('the disk is full');
  };
  const storage = { machine: write, volume: write, attachment: write };
  const { machines, volumes, clock } = platform({}, { storage });
  machines.create(machine('a'), null);
  isFull = true;
  expect(() => machines.create(machine('b'), null)).toThrow('full');
  clock.at = 10;
  expect(() => machines.get('a')).toThrow('full');
  expect(() => volumes.create(volume, null)).toThrow('full');
  isFull = false;
  expect(machines.get('a')).toMatchObject({ value: { power: 'running' } });
  expect([machines.get('b'), volumes.get('vol')]).toEqual([{ answer: 'gone' }, { answer: 'gone' }]);
});

it('leaves an attachment record behind if records outlive machines, and does not treat it as a holder', () => {
  const { machines, volumes, clock } = platform({ recordsLinger: true, isShareable: () => false });
  machines.create(machine('a'), null);
  volumes.create(volume, null);
  clock.at = 10;
  expect(volumes.attach('vol', 'a')).toEqual({ outcome: 'done', value: null });
  for (const made of machines.of('a')) machines.remove(made, 'lost');
  expect([volumes.get('vol'), volumes.holders('vol')]).toMatchObject([{ value: { attachedTo: ['a'] } }, []]);
  machines.create(machine('b'), null);
  clock.at = 20;
  expect(volumes.attach('vol', 'b')).toMatchObject({ code: 'conflict' });
  expect(volumes.detach('vol', 'a')).toEqual({ outcome: 'done', value: null });
  expect(volumes.attach('vol', 'b')).toEqual({ outcome: 'done', value: null });
});

it('makes one machine over several calls, with or without the cookie', () => {
  const { machines, clock } = platform({ createCalls: () => 3, units: () => 1 });
  const first = machines.create(machine('a'), null);
  expect(first).toMatchObject({ outcome: 'pending', pollAfterMs: 1 });
  clock.at = 1_000;
  expect(machines.get('a')).toMatchObject({ value: { power: 'building' } });
  expect(machines.create(machine('a'), null)).toMatchObject({ outcome: 'pending', pollAfterMs: 1 });
  expect(machines.create(machine('a'), 'build-1')).toMatchObject({ outcome: 'pending', pollAfterMs: 10 });
  clock.at = 1_010;
  expect(machines.create(machine('a'), 'build-1')).toMatchObject({ outcome: 'done' });
  expect(machines.of('a')).toHaveLength(1);
});

it('keeps the parts and the unit of a partly refused machine until it is removed', () => {
  const refusal = { outcome: 'failed', code: 'transient', sideEffect: 'none', detail: 'no disk' } as const;
  const { machines, clock } = platform({
    createCalls: () => 2,
    refusePart: () => refusal,
    places: [{ offerId: 'cpu', datacenter: 'fra' }],
    namesCounted: false,
  });
  machines.create(machine('a'), null);
  expect(machines.create(machine('a'), 'build-1')).toEqual(refusal);
  const counted = (units: number) => ({
    answer: 'counted',
    free: [{ offerId: 'cpu', datacenter: 'fra', units }],
  });
  expect(machines.inventory()).toEqual(counted(1));
  machines.destroy('a');
  clock.at = 10;
  expect([machines.get('a'), machines.inventory()]).toEqual([{ answer: 'gone' }, counted(2)]);
});

it('disowns a stopped machine: it is hidden, keeps its record, and its unit and volumes are free', () => {
  const kept = new Map<string, MachineRecord>();
  const storage = {
    machine: (before: MachineRecord | undefined, after: MachineRecord | undefined) =>
      void (after === undefined ? kept.delete(before?.spec.ref ?? '') : kept.set(after.spec.ref, after)),
    volume: () => undefined,
    attachment: () => undefined,
  };
  const holds = { units: () => 1, holdsUnitStopped: () => true };
  const { machines, volumes, clock } = platform(holds, { storage });
  machines.create(machine('a'), null);
  volumes.create(volume, null);
  clock.at = 10;
  volumes.attach('vol', 'a');
  expect(machines.disown('a')).toMatchObject({ code: 'conflict', sideEffect: 'none' });
  machines.stop('a');
  clock.at = 20;
  expect(machines.create(machine('b'), null)).toMatchObject({ code: 'capacity' });
  expect(machines.disown('a')).toEqual({ outcome: 'done', value: null });
  expect([machines.get('a'), machines.list(), machines.all()]).toEqual([{ answer: 'gone' }, [], []]);
  expect(volumes.get('vol')).toMatchObject({ value: { attachedTo: [] } });
  expect(machines.disown('a')).toEqual({ outcome: 'done', value: null });
  expect(machines.destroy('a')).toEqual({ outcome: 'done', value: null });
  expect(machines.create(machine('b'), null)).toMatchObject({ outcome: 'pending' });
  expect([...kept.keys()]).toEqual(['a', 'b']);
  const again = createPlatform(
    { clock, rules: rulesOfTests, machineDraws: draws, volumeDraws: draws },
    { machines: kept.values(), volumes: [], attachments: [] },
  );
  expect(again.machines.all().map(({ spec }) => spec.ref)).toEqual(['b']);
});
