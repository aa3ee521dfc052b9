import { describe, expect, it } from 'vitest';
import type { Endpoint, PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { failed } from '../../src/platform-model/steps.ts';
import { everyProbeWorks } from '../support/doubles/plain-platform.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';
import { withMachines } from './recovery.fixture.ts';

async function online(
  orchestrator: TestOrchestrator,
  overrides: Record<string, unknown> = {},
): Promise<string> {
  const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest(overrides) });
  const id = String(body['id']);
  await orchestrator.waitFor(id, 'ONLINE');
  return id;
}

/** Calls the platform behind the orchestrator's back until the step is done. */
async function behind(call: () => Promise<{ outcome: string }>): Promise<void> {
  await until('the platform is done', async () => (await call()).outcome === 'done');
}

/** Makes an instance. `reads` lets some time pass, and tells whether its status is the given one. */
async function make(
  { request }: TestOrchestrator,
  clock: VirtualClock,
  overrides: Record<string, unknown> = {},
) {
  const { id } = (await request('POST', '/instances', { body: instanceRequest(overrides) })).body;
  const reads = async (status: string | undefined): Promise<boolean> => {
    await clock.advance(100);
    return (await request('GET', `/instances/${id}`)).body['status'] === status;
  };
  return { id, reads };
}

const refOf = async ({ store }: TestOrchestrator, id: string): Promise<string> =>
  (await store.read.instances.byId(id))?.ownerRef ?? '';

describe('what the platform does by itself', () => {
  it('a guest that powers itself off becomes STOPPED, its capacity free, and can be started', async () => {
    await using orchestrator = await startTestOrchestrator();
    const id = await online(orchestrator);
    const ref = await refOf(orchestrator, id);
    await behind(() => orchestrator.simulator.stop(ref, null));
    await orchestrator.waitFor(id, 'STOPPED');
    expect(await orchestrator.store.read.claims.isHeldBy(id)).toBe(false);
    await orchestrator.request('POST', `/instances/${id}/start`);
    await orchestrator.waitFor(id, 'ONLINE');
  });

  it('a stopped machine that is reaped becomes OFFLINE, for good, until it is deleted [stopped-machine-reaped]', async () => {
    const clock = new VirtualClock();
    await using orchestrator = await startTestOrchestrator({
      clock,
      probe: everyProbeWorks,
      platform: { reapStoppedAfterS: 60 },
      reconcile: { emptyForMs: 2_000 },
    });
    const { request } = orchestrator;
    const { id, reads } = await make(orchestrator, clock);
    await until('it is ONLINE', () => reads('ONLINE'));
    await request('POST', `/instances/${id}/stop`);
    await until('it is STOPPED', () => reads('STOPPED'));
    await clock.skip(60_000);
    await until('it is OFFLINE', () => reads('OFFLINE'));
    expect((await request('POST', `/instances/${id}/start`)).status).toBe(409);
    expect((await request('DELETE', `/instances/${id}`)).body['status']).toBe('DESTROYING');
    await until('it is gone', () => reads(undefined));
  });

  it('a spot machine that is reclaimed is destroyed', async () => {
    const clock = new VirtualClock();
    await using orchestrator = await startTestOrchestrator({
      clock,
      probe: everyProbeWorks,
      platform: { reclaimSpotAfterS: [3_600, 3_600] },
      reconcile: { emptyForMs: 2_000 },
    });
    const { store } = orchestrator;
    const { id, reads } = await make(orchestrator, clock, { configuration_id: 'a100-sxm-1x-spot' });
    await until('it is ONLINE', () => reads('ONLINE'));
    await clock.skip(3_600_000);
    await until('it is gone', () => reads(undefined));
    expect(await store.read.claims.isHeldBy(String(id))).toBe(false);
  });

  it('a spot machine that its platform never finishes removing raises an alarm, and goes by an order [reclaim-overdue]', async () => {
    const clock = new VirtualClock();
    let isReclaimed = false;
    await using orchestrator = await startTestOrchestrator({
      clock,
      probe: everyProbeWorks,
      reconcile: { emptyForMs: 2_000 },
      wrapDriver: (driver) =>
        withMachines(driver, (machine) => (isReclaimed ? { ...machine, power: 'destroying' } : machine)),
    });
    const { request, store } = orchestrator;
    const { id, reads } = await make(orchestrator, clock, { configuration_id: 'a100-sxm-1x-spot' });
    await until('it is ONLINE', () => reads('ONLINE'));
    isReclaimed = true;
    await until('it is DESTROYING', () => reads('DESTROYING'));
    await clock.advance(9 * 60_000);
    expect(await store.read.alarms.list()).toEqual([]);
    await clock.advance(3 * 60_000);
    const text = expect.stringContaining('`berth instances rm` orders it');
    expect(await store.read.alarms.list()).toMatchObject([{ kind: 'step_failing', subject: id, text }]);
    await request('DELETE', `/instances/${id}`);
    await until('it is gone', () => reads(undefined));
    expect(await store.read.alarms.list()).toEqual([]);
  });

  it.each([
    ['an ONLINE', 'ONLINE', undefined],
    ['a STOPPED', 'STOPPED', undefined],
    ['a STOPPING', 'STOPPING', 'stop'],
    ['a STOPPED, which is to be started,', 'STOPPED', 'start'],
  ])(
    '%s dedicated machine that its platform removes without an order raises an alarm, and goes by an order [unordered-removal]',
    async (_name, status, verb) => {
      const clock = new VirtualClock();
      let isRemoved = false;
      let sent = 0;
      await using orchestrator = await startTestOrchestrator({
        clock,
        probe: everyProbeWorks,
        wrapDriver: (driver) => {
          const shown = withMachines(driver, (machine) =>
            isRemoved ? { ...machine, power: 'destroying' } : machine,
          );
          const gone = async () => {
            sent++;
            return failed('gone', 'there is no machine');
          };
          const unlessGone =
            (change: 'start' | 'stop'): PlatformDriver['stop'] =>
            (...order) =>
              isRemoved ? gone() : driver[change](...order);
          return { ...shown, start: unlessGone('start'), stop: unlessGone('stop') };
        },
      });
      const { request, store } = orchestrator;
      const { id, reads } = await make(orchestrator, clock);
      await until('it is ONLINE', () => reads('ONLINE'));
      if (status === 'STOPPED') {
        await request('POST', `/instances/${id}/stop`);
        await until('it is STOPPED', () => reads('STOPPED'));
      }
      isRemoved = true;
      if (verb !== undefined) await request('POST', `/instances/${id}/${verb}`);
      const failing = async () =>
        (await store.read.alarms.list()).filter(({ kind }) => kind === 'step_failing');
      await clock.advance(9 * 60_000);
      expect(await failing()).toEqual([]);
      await clock.advance(3 * 60_000);
      expect(await reads(status)).toBe(true);
      const text = expect.stringContaining('`berth instances rm` orders it');
      expect(await failing()).toMatchObject([{ subject: id, text }]);
      // The start or the stop, and the stop that undoes a start.
      expect(sent).toBeLessThanOrEqual(2);
      await request('DELETE', `/instances/${id}`);
      await until('it is gone', () => reads(undefined));
      expect(await store.read.alarms.list()).toEqual([]);
    },
  );

  it('a dedicated machine that is proved gone is ERROR, with a text', async () => {
    await using orchestrator = await startTestOrchestrator({ reconcile: { emptyForMs: 2_000 } });
    const id = await online(orchestrator);
    const ref = await refOf(orchestrator, id);
    await behind(() => orchestrator.simulator.destroy(ref, null, anOrder));
    expect((await orchestrator.waitFor(id, 'ERROR'))['error']).toMatch(
      /machine of this instance no longer exists/,
    );
  });

  it('a stopped machine that is started outside Berth is stopped again', async () => {
    await using orchestrator = await startTestOrchestrator();
    const id = await online(orchestrator);
    await orchestrator.request('POST', `/instances/${id}/stop`);
    await orchestrator.waitFor(id, 'STOPPED');
    const ref = await refOf(orchestrator, id);
    await behind(() => orchestrator.simulator.start(ref, null));
    await until('the machine is stopped', async () => {
      const found = await orchestrator.simulator.get(ref);
      return found.answer === 'observed' && found.value.power === 'stopped';
    });
    expect((await orchestrator.request('GET', `/instances/${id}`)).body['status']).toBe('STOPPED');
  });
});

describe('an address, port and forwards that change', () => {
  const TICK_MS = 20;
  const endpoint = (generation: number): Endpoint => ({
    publicIp: `192.0.2.${generation}`,
    privateIp: `10.0.0.${generation}`,
    sshPort: 2_200 + generation,
    sshUsername: `user${generation}`,
    portForwards: [{ internal_port: 8_000, external_port: 30_000 + generation }],
  });
  const reading = (generation: number) => {
    const { publicIp, privateIp, sshPort, sshUsername, portForwards } = endpoint(generation);
    return {
      public_ip: publicIp,
      private_ip: privateIp,
      ssh_port: sshPort,
      ssh_username: sshUsername,
      port_forwards: portForwards,
    };
  };

  /** An ONLINE instance at its first endpoint. */
  async function start() {
    const berth = await startPlainOrchestrator();
    const { platform } = berth;
    const { driver } = platform;
    const moveTo = (ref: string, generation: number): void => {
      platform.change(ref, { endpoint: endpoint(generation) });
    };
    const create = driver.create;
    driver.create = async (spec, cookie) => {
      await create(spec, cookie);
      moveTo(spec.ref, 1);
      return create(spec, cookie);
    };
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    const ref = await refOf(berth.orchestrator, id);
    return { berth, id, moveTo, move: () => moveTo(ref, 2) };
  }

  /** Reads the instance, and the list, at each tick until it is ONLINE at its second endpoint. */
  async function poll({ berth, id }: Awaited<ReturnType<typeof start>>) {
    const seen: { status: unknown; reading: object }[] = [];
    for (let tick = 0; tick < 1_000; tick++) {
      const { instances } = await berth.read('/instances');
      const [listed = {}] = instances as Record<string, unknown>[];
      for (const body of [listed, await berth.read(`/instances/${id}`)]) {
        const { public_ip, private_ip, ssh_port, ssh_username, port_forwards, status } = body;
        seen.push({ status, reading: { public_ip, private_ip, ssh_port, ssh_username, port_forwards } });
        if (status === 'ONLINE' && public_ip === reading(2).public_ip) return seen;
      }
      await berth.clock.advance(TICK_MS);
    }
    throw new Error(`it never read ${JSON.stringify(reading(2))}, but ${JSON.stringify(seen.at(-1))}`);
  }

  it('with a start are read together, old or new, never mixed, and new as soon as it is ONLINE [address-changes-with-start]', async () => {
    const started = await start();
    const { berth, id, moveTo } = started;
    await using _ = berth;
    await berth.post(`/instances/${id}/stop`);
    await berth.passUntil(`/instances/${id}`, 'STOPPED');
    const { driver } = berth.platform;
    const turnOn = driver.start;
    driver.start = async (ref, cookie) => {
      moveTo(ref, 2);
      return turnOn(ref, cookie);
    };
    // Takes a while, so that it is read before it is started.
    berth.setPlan(({ method }) => (method === 'start' ? { kind: 'delay', ms: TICK_MS } : 'none'));
    await berth.post(`/instances/${id}/start`);
    const seen = await poll(started);
    const allowed = { STOPPED: [reading(1), reading(2)], ONLINE: [reading(2)] };
    for (const { status, reading: read } of seen)
      expect(allowed[status as keyof typeof allowed]).toContainEqual(read);
    expect(seen[0]).toEqual({ status: 'STOPPED', reading: reading(1) });
  });

  it('while it runs are read together, old or new, never mixed, and ONLINE throughout [address-changes-while-running]', async () => {
    const started = await start();
    await using _ = started.berth;
    started.move();
    const seen = await poll(started);
    expect(seen.at(-1)).toEqual({ status: 'ONLINE', reading: reading(2) });
    expect(seen.length).toBeGreaterThan(1);
    for (const one of seen.slice(0, -1)) expect(one).toEqual({ status: 'ONLINE', reading: reading(1) });
  });
});
