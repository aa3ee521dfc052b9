import { beforeEach, expect, it } from 'vitest';
import { anOrder } from '../../test/support/rows/orchestrator-rows.ts';
import { createPlatform, driverOf, Hosts, type PlatformHost } from './platform.ts';
import type { MachineRecord } from './records.ts';

const manifest = {
  name: 'simulator',
  stop: true,
  resume: true,
  restart: true,
  attachVolume: 'hot',
  resizeVolume: 'detached',
  createVisibleWithinMs: 0,
  keepsNotes: false,
  cloudInitBytes: 0,
} as const;
const size = { vcpus: 1, memoryGb: 1, rootDiskGb: 1, gpuCount: 0, gpuType: undefined };
const spec = { ref: 'a', offerId: 'cpu', datacenter: 'fra', hostname: 'h', image: 'i', note: '', ...size };
const order = { ...spec, sshKeys: [], cloudInit: undefined };

let clock: { at: number; now(): number };
let hosts: Hosts<MachineRecord>;
let driver: ReturnType<typeof driverOf>;
let here: PlatformHost;
let there: PlatformHost;

/** Two hosts, and a machine that runs on `here`. */
beforeEach(async () => {
  clock = { at: 0, now: () => clock.at };
  const platform = createPlatform<MachineRecord>({
    clock,
    rules: {
      manifest,
      durations: { boot: [10, 10], stop: [10, 10], start: [10, 10], restart: [10, 10], destroy: [10, 10] },
      units: () => 2,
      make: () => ({}),
      endpoint: () => undefined,
    },
    machineDraws: { durationMs: (_name, [, most]) => most, happens: () => false },
    volumeDraws: { durationMs: (_name, [, most]) => most, happens: () => false },
  });
  hosts = new Hosts(platform.machines, ['n1', 'n2']);
  driver = driverOf({ ...platform, hosts }, manifest);
  await driver.create(order, null);
  clock.at = 10;
  const [machine] = platform.machines.all();
  here = (machine && hosts.of(machine)) as PlatformHost;
  there = hosts.all.find((host) => host !== here) as PlatformHost;
});

it('a silent host hides its machines, is reported, and accepts no order; nothing is made twice', async () => {
  here.state = 'silent';
  const asked = { answered: [there.name], silent: [here.name] };
  expect(await driver.get('a')).toMatchObject({ answer: 'unknown', hosts: asked });
  expect(await driver.list()).toEqual({ answer: 'listed', items: [], hosts: asked });
  const refused = { outcome: 'failed', code: 'transient' };
  expect(await driver.create(order, null)).toMatchObject(refused);
  expect(await driver.stop('a', null)).toMatchObject(refused);
  expect(await driver.destroy('a', null, anOrder)).toMatchObject(refused);
  expect(await driver.create({ ...order, ref: 'b' }, null)).toMatchObject({ outcome: 'pending' });
  there.state = 'silent';
  expect(await driver.list()).toMatchObject({ answer: 'unknown' });
});

it('a host that is not configured is not asked, so its machines read as gone', async () => {
  here.state = 'unconfigured';
  expect(await driver.get('a')).toEqual({ answer: 'gone', hosts: { answered: [there.name], silent: [] } });
  expect(await driver.destroy('a', null, anOrder)).toMatchObject({ outcome: 'done' });
  here.state = 'answers';
  here.name = 'n9';
  expect(await driver.get('a')).toMatchObject({ value: { power: 'running', host: 'n9' } });
});

it('a removal continues while another host is silent, and ends for its own caller', async () => {
  there.state = 'silent';
  expect(await driver.destroy('a', null, anOrder)).toMatchObject({ outcome: 'pending' });
  clock.at = 20;
  expect(await driver.destroy('a', null, anOrder)).toMatchObject({ outcome: 'failed', code: 'transient' });
  expect(await driver.destroy('a', 'removing', anOrder)).toEqual({ outcome: 'done', value: null });
});
