import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { anOrder } from '../../../../test/support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import type { PlatformDriver } from '../../../orchestrator/model/platform-driver.ts';
import type { SimulatorOptions } from '../options.ts';
import { doneValue, endpointOf, instantly, machineSpec, observe } from '../simulator.fixture.ts';
import { createSimulator } from './simulator.ts';

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

async function simulator(
  platform: SimulatorOptions['platform'] = {},
  capacity: SimulatorOptions['capacity'] = [
    { offerId: 'h100', datacenter: 'fra', units: 1, spot: false },
    { offerId: 'h100-spot', datacenter: 'fra', units: 1, spot: true },
  ],
): Promise<{ driver: PlatformDriver; clock: VirtualClock }> {
  const clock = new VirtualClock();
  const driver = await createSimulator({ stateFile: ':memory:', capacity, platform }, clock);
  cleanups.push(async () => {
    await driver.close();
    expect(clock.pendingTimers, 'timers left behind').toBe(0);
  });
  return { driver, clock };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const answer = (listens: boolean) => () => {
      socket.destroy();
      resolve(listens);
    };
    socket.once('connect', answer(true)).once('error', answer(false));
  });
}

it('starts nothing for a call that was cancelled or became too late while it waited for another call on the machine', async () => {
  const { driver, clock } = await simulator(instantly);
  const controller = new AbortController();
  const call = { deadline: clock.now() + 5, fence: 1, signal: controller.signal };
  const given = driver.create(machineSpec(), null);
  const stopped = driver.stop('berth-1', null, call);
  const destroyed = driver.destroy('berth-1', null, anOrder, {
    ...call,
    signal: new AbortController().signal,
  });
  controller.abort();
  clock.step(6);
  doneValue(await given);
  const nothing = { outcome: 'failed', code: 'transient', sideEffect: 'none' };
  expect(await stopped).toMatchObject({ ...nothing, detail: expect.stringContaining('cancelled') });
  expect(await destroyed).toMatchObject({ ...nothing, detail: expect.stringContaining('deadline') });
  expect(await observe(driver, 'berth-1')).toMatchObject({ power: 'running' });
});

describe('a create', () => {
  it('is pending for the drawn boot time, then done', async () => {
    const { driver, clock } = await simulator({ bootMs: [2000, 2000] });
    expect(await driver.create(machineSpec(), null)).toMatchObject({ outcome: 'pending', pollAfterMs: 1000 });
    expect(await observe(driver, 'berth-1')).toEqual({
      ref: 'berth-1',
      note: 'a note',
      host: 'fra-r1-h100-1',
      power: 'building',
      createdAt: clock.now(),
    });

    await clock.advance(1999);
    expect(await driver.create(machineSpec(), 'any')).toMatchObject({ outcome: 'pending', pollAfterMs: 1 });
    await clock.advance(1);
    const { endpoint } = doneValue(await driver.create(machineSpec(), 'any'));
    expect(endpoint).toEqual({
      publicIp: '127.0.0.1',
      privateIp: expect.stringMatching(/^10\./),
      sshPort: expect.any(Number),
      sshUsername: 'ubuntu',
      portForwards: [{ internal_port: 22, external_port: endpoint?.sshPort }],
      hostKeyFingerprint: expect.stringMatching(/^SHA256:[A-Za-z0-9+/]{43}$/),
    });
  });

  it.each([
    ['an unknown offer', { offerId: 'h200' }],
    ['an unknown datacenter', { datacenter: 'ams' }],
    ['a ref that no platform takes', { ref: '../berth' }],
  ])('is invalid for %s', async (_name, overrides) => {
    const { driver } = await simulator();
    expect(await driver.create(machineSpec(overrides), null)).toMatchObject({
      code: 'invalid',
      sideEffect: 'none',
    });
  });

  it('does not adopt a machine of another offer', async () => {
    const { driver } = await simulator();
    await driver.create(machineSpec(), null);
    expect(await driver.create(machineSpec({ offerId: 'h100-spot' }), null)).toMatchObject({
      code: 'already_exists',
    });
  });

  it('fails when the boot fails; the failed machine stays until it is destroyed', async () => {
    const { driver } = await simulator({ ...instantly, bootFailureRate: 1 });
    expect(await driver.create(machineSpec(), null)).toMatchObject({
      outcome: 'failed',
      code: 'boot_failed',
      sideEffect: 'certain',
      host: expect.stringContaining('-r1-'),
    });
    expect(await observe(driver, 'berth-1')).toMatchObject({
      power: 'failed',
      detail: expect.stringContaining('boot failed'),
    });
    expect(await driver.create(machineSpec({ ref: 'berth-2' }), null)).toMatchObject({ code: 'capacity' });
    doneValue(await driver.destroy('berth-1', null, anOrder));
    expect(await driver.get('berth-1')).toEqual({ answer: 'gone' });
  });

  it('is done for a machine whose SSH never comes up', async () => {
    const { driver } = await simulator({ ...instantly, sshNeverUpRate: 1 });
    const { sshPort } = endpointOf(doneValue(await driver.create(machineSpec(), null)));
    expect(await isListening(sshPort)).toBe(false);
  });
});

describe('SSH', () => {
  it('listens only while the machine runs, always on the same port', async () => {
    const { driver } = await simulator(instantly);
    const { sshPort } = endpointOf(doneValue(await driver.create(machineSpec(), null)));
    expect(await isListening(sshPort)).toBe(true);

    doneValue(await driver.stop('berth-1', null));
    expect(await isListening(sshPort)).toBe(false);

    expect(endpointOf(doneValue(await driver.start('berth-1', null))).sshPort).toBe(sshPort);
    expect(await isListening(sshPort)).toBe(true);

    doneValue(await driver.destroy('berth-1', null, anOrder));
    expect(await isListening(sshPort)).toBe(false);
  });

  it('comes up by itself when the boot time has passed', async () => {
    const { driver, clock } = await simulator({ bootMs: [10, 10], stopMs: [10, 10], startMs: [10, 10] });
    await driver.create(machineSpec(), null);
    await clock.advance(10);
    const { sshPort } = endpointOf(await observe(driver, 'berth-1'));
    await driver.stop('berth-1', null);
    await clock.advance(10);
    await driver.start('berth-1', null);
    await clock.advance(10);
    await expect.poll(() => isListening(sshPort)).toBe(true);
  });
});

describe('the capacity', () => {
  it('is freed by a stop; a start without a free unit changes nothing', async () => {
    const { driver } = await simulator(instantly);
    doneValue(await driver.create(machineSpec(), null));
    doneValue(await driver.stop('berth-1', null));
    doneValue(await driver.create(machineSpec({ ref: 'berth-2' }), null));

    expect(await driver.start('berth-1', null)).toMatchObject({ code: 'capacity', sideEffect: 'none' });
    expect(await observe(driver, 'berth-1')).toMatchObject({ power: 'stopped' });

    doneValue(await driver.destroy('berth-2', null, anOrder));
    doneValue(await driver.start('berth-1', null));
  });

  it('is never oversold by concurrent creates', async () => {
    const { driver } = await simulator();
    const steps = await Promise.all(
      ['berth-1', 'berth-2', 'berth-3'].map((ref) => driver.create(machineSpec({ ref }), null)),
    );
    expect(steps.map((step) => step.outcome).sort()).toEqual(['failed', 'failed', 'pending']);
  });
});

describe('calls that do not fit the state', () => {
  it('are conflicts that say when to retry', async () => {
    const { driver, clock } = await simulator({ bootMs: [50, 50], stopMs: [50, 50] });
    const conflict = { outcome: 'failed', code: 'conflict', sideEffect: 'none', retryAfterMs: 50 };
    await driver.create(machineSpec(), null);
    expect(await driver.stop('berth-1', null)).toMatchObject(conflict);
    await clock.advance(50);
    expect(await driver.stop('berth-1', null)).toMatchObject({ outcome: 'pending' });
    expect(await driver.start('berth-1', null)).toMatchObject(conflict);
  });
});

describe('the platform on its own', () => {
  it('reaps a machine that has been stopped for a long time', async () => {
    const { driver, clock } = await simulator({ ...instantly, reapStoppedAfterS: 60 });
    doneValue(await driver.create(machineSpec(), null));
    doneValue(await driver.stop('berth-1', null));
    await clock.advance(59_999);
    expect(await driver.get('berth-1')).toMatchObject({ answer: 'observed' });
    await clock.advance(1);
    expect(await driver.get('berth-1')).toEqual({ answer: 'gone' });
  });

  it('reclaims machines of spot offers only', async () => {
    const { driver, clock } = await simulator({ ...instantly, reclaimSpotAfterS: [60, 60] });
    doneValue(await driver.create(machineSpec(), null));
    doneValue(await driver.create(machineSpec({ ref: 'berth-2', offerId: 'h100-spot' }), null));
    await clock.advance(60_000);
    expect(await driver.get('berth-2')).toEqual({ answer: 'gone' });
    expect(await observe(driver, 'berth-1')).toMatchObject({ power: 'running' });
  });
});

it('puts the units of a datacenter on hosts, keeps each machine on its host, and shows hosts with their GPUs', async () => {
  const { vcpus, memoryGb, rootDiskGb, gpuCount, gpuType } = machineSpec();
  const size = { vcpus, memoryGb, rootDiskGb, gpuCount, gpuType };
  const region = { offerId: 'h100', datacenter: 'fra', units: 3, spot: false, size };
  const { driver } = await simulator(instantly, [region, region]);
  const [one, other] = ['fra-r1-h100-1', 'fra-r1-h100-2'];
  const make = (ref: string, ...avoidHosts: string[]) =>
    driver.create(machineSpec({ ref, avoidHosts }), null);
  const count = async (...avoidHosts: string[]) => driver.inventory?.(avoidHosts);
  const hosts: unknown[] = [];
  for (const ref of ['a', 'b', 'c', 'd']) hosts.push(doneValue(await make(ref)).host);
  expect(hosts).toEqual([one, one, one, other]);
  expect(doneValue(await make('e', one)).host).toBe(other);
  expect(await make('f', one)).toMatchObject({ outcome: 'failed', code: 'capacity', sideEffect: 'none' });
  expect(await count(one)).toMatchObject({
    free: [
      {
        units: 0,
        obstacles: [`${one}: an operator has cordoned it in Berth`, `${other}: all its units are taken`],
      },
    ],
    hosts: [
      {
        host: one,
        state: 'closed',
        vcpus: { total: 32, taken: 24 },
        memoryGb: { total: 256, taken: 192 },
        diskGb: { total: 400, taken: 300 },
        devices: [...'aabbcc  '].map((ref, gpu) => ({
          id: `gpu${gpu}`,
          type: 'H100',
          ...(ref === ' ' ? { state: 'free' } : { state: 'claimed', ref }),
        })),
      },
      { host: other, state: 'open', devices: [...'ddee'].map((ref) => ({ ref })) },
    ],
  });
  doneValue(await driver.stop('d', null));
  expect(await count(one)).toMatchObject({ free: [{ units: 1 }] });
  doneValue(await make('f', one));
  expect(await driver.start('d', null)).toMatchObject({ outcome: 'failed', code: 'capacity' });
  expect(await count()).toMatchObject({ free: [{ units: 1 }] });
  await driver.destroy('e', null, anOrder);
  expect(doneValue(await driver.start('d', null)).host).toBe(other);
});

it('draws the same values for the same seed, regardless of other calls', async () => {
  const bootMs = async (refs: string[]): Promise<number> => {
    const { driver } = await simulator({ bootMs: [1, 999], seed: 'fixed' });
    for (const ref of refs) await driver.create(machineSpec({ ref, offerId: 'h100-spot' }), null);
    const step = await driver.create(machineSpec(), null);
    return step.outcome === 'pending' ? step.pollAfterMs : 0;
  };
  expect(await bootMs([])).toBe(await bootMs(['berth-other']));
});

it('answers nothing once it is closed', async () => {
  const { driver } = await simulator(instantly);
  doneValue(await driver.create(machineSpec(), null));
  await driver.close();
  await expect(driver.get('berth-1')).rejects.toThrow('closed');
  await expect(driver.list()).rejects.toThrow('closed');
  await expect(driver.volumes?.get('vol-1')).rejects.toThrow('closed');
  await expect(driver.close()).resolves.toBeUndefined();
});
