import { describe, expect, it } from 'vitest';
import { type FaultyDriver, withFaults } from '../../src/drivers/kit/faults.ts';
import type { PlatformDriver, Step, VolumeDriver } from '../../src/orchestrator/model/platform-driver.ts';
import type { DriverCall, Fault } from '../../src/platform-model/call-faults.ts';
import { anOrder } from '../../testing/orchestrator-rows.ts';
import { instanceRequest, volumeRequest } from '../../testing/requests.ts';
import { until } from '../../testing/until.ts';
import { startTestOrchestrator, type TestOptions } from '../support/orchestrator.ts';

async function start(options: TestOptions = {}) {
  let plan: (call: DriverCall) => Fault = () => 'none';
  let faulty: FaultyDriver | undefined;
  const { wrapDriver = (driver) => driver } = options;
  const orchestrator = await startTestOrchestrator({
    ...options,
    wrapDriver: (driver) => {
      faulty = withFaults(wrapDriver(driver), (call) => plan(call));
      return faulty;
    },
  });
  const { request, store } = orchestrator;
  const make = async (path: string, body: Record<string, unknown>): Promise<string> => {
    const reply = await request('POST', path, { body });
    if (reply.status !== 201) throw new Error(reply.text);
    return String(reply.body['id']);
  };
  const statusOf = async (id: string): Promise<string> => {
    const reply = await request('GET', `/volumes/${id}`);
    return reply.status === 404 ? 'GONE' : String(reply.body['status']);
  };
  const waitForVolume = (id: string, status: string): Promise<void> =>
    until(`${id} reads ${status}`, async () => (await statusOf(id)) === status);
  const instance = (overrides: Record<string, unknown> = {}) =>
    make('/instances', instanceRequest(overrides));
  return {
    orchestrator,
    instance,
    waitForVolume,
    volume: (overrides: Record<string, unknown> = {}) => make('/volumes', volumeRequest(overrides)),
    online: async (overrides: Record<string, unknown> = {}): Promise<string> => {
      const id = await instance(overrides);
      await orchestrator.waitFor(id, 'ONLINE');
      return id;
    },
    available: async (): Promise<string> => {
      const id = await make('/volumes', volumeRequest());
      await waitForVolume(id, 'AVAILABLE');
      return id;
    },
    attach: (id: string, ...instanceIds: string[]) =>
      request('POST', `/volumes/${id}/attach`, { body: { instance_ids: instanceIds } }),
    detach: (id: string) => request('POST', `/volumes/${id}/detach`),
    remove: async (path: string): Promise<void> => {
      expect([200, 204]).toContain((await request('DELETE', path)).status);
    },
    setPlan: (next: (call: DriverCall) => Fault) => {
      plan = next;
    },
    calls: (method: DriverCall['method']): number =>
      faulty?.calls.filter((call) => call.method === method).length ?? 0,
    heal: () => {
      plan = () => 'none';
      faulty?.release();
    },
    hasCalled: (method: DriverCall['method']) =>
      faulty?.calls.some((call) => call.method === method) ?? false,
    /** Nothing is left to do for the resource. */
    settled: (id: string) => until(`${id} is settled`, async () => (await store.read.work.of(id)) === null),
  };
}

const cold = { attach_volume: 'cold', stop_ms: [2_000, 2_000] } as const;

/** The driver with some calls of its volumes answered by the test. */
function withVolumes(
  driver: PlatformDriver,
  change: (volumes: VolumeDriver) => Partial<VolumeDriver>,
): PlatformDriver {
  const { volumes } = driver;
  if (volumes === undefined) throw new Error('the simulator has volumes');
  const kept: VolumeDriver = {
    get: (ref) => volumes.get(ref),
    list: () => volumes.list(),
    create: (spec, cookie) => volumes.create(spec, cookie),
    attach: (ref, machine, cookie) => volumes.attach(ref, machine, cookie),
    detach: (ref, machine, cookie) => volumes.detach(ref, machine, cookie),
    resize: (ref, sizeGb, cookie) => volumes.resize(ref, sizeGb, cookie),
    destroy: (ref, cookie) => volumes.destroy(ref, cookie, anOrder),
  };
  return { ...driver, volumes: { ...kept, ...change(volumes) } };
}

describe('a volume that is still being made', () => {
  it('whose create comes back after its DELETE is gone all the same, on the platform too', async () => {
    const { orchestrator, volume, remove, waitForVolume, setPlan, heal, calls } = await start({
      reconcile: { lease_s: 0.2 },
      // A platform that compares neither deadline nor fence.
      wrapDriver: (driver) => withVolumes(driver, () => ({})),
    });
    await using _ = orchestrator;
    setPlan(({ method }) => (method === 'volumes.create' ? 'hang' : 'none'));
    const id = await volume();
    await until('it is called', () => calls('volumes.create') > 0);
    await remove(`/volumes/${id}`);
    await waitForVolume(id, 'GONE');
    // The platform carries the create out now.
    heal();
    await until('it was made and removed', () => calls('volumes.destroy') > 1);
    await until('nothing is left', async () => {
      const listing = await orchestrator.simulator.volumes?.list();
      return listing?.answer === 'listed' && listing.items.length === 0;
    });
  });

  const slow = { volume_ms: [300, 300] } as const;

  it('and is detached again before it is there ends AVAILABLE', async () => {
    const { orchestrator, volume, online, detach, waitForVolume } = await start({ platform: slow });
    await using _ = orchestrator;
    const machine = await online();
    const id = await volume({ instance_ids: [machine] });
    const reply = await detach(id);
    expect([reply.status, reply.body['status']]).toEqual([200, 'CREATING']);
    await waitForVolume(id, 'AVAILABLE');
    expect(await orchestrator.store.read.volumes.attachmentsOfVolume(id)).toEqual([]);
  });

  it('while its instance is destroyed ends AVAILABLE', async () => {
    const { orchestrator, volume, online, remove, waitForVolume } = await start({
      platform: { volume_ms: [600, 600] },
    });
    await using _ = orchestrator;
    const machine = await online();
    const id = await volume({ instance_ids: [machine] });
    await remove(`/instances/${machine}`);
    await orchestrator.waitFor(machine, 'GONE');
    await waitForVolume(id, 'AVAILABLE');
    expect(await orchestrator.store.read.volumes.attachmentsOfVolume(id)).toEqual([]);
  });

  it('can be attached, detached and attached again before it is there', async () => {
    const { orchestrator, volume, online, attach, detach, waitForVolume } = await start({ platform: slow });
    await using _ = orchestrator;
    const machine = await online();
    const id = await volume();
    await attach(id, machine);
    await detach(id);
    await attach(id, machine);
    await waitForVolume(id, 'ATTACHED');
  });

  it('and is deleted is gone from the platform too', async () => {
    const { orchestrator, volume, remove, waitForVolume } = await start({ platform: slow });
    await using _ = orchestrator;
    const id = await volume();
    await remove(`/volumes/${id}`);
    await waitForVolume(id, 'GONE');
    expect(await orchestrator.simulator.volumes?.list()).toEqual({ answer: 'listed', items: [] });
  });
});

describe('a volume that can be shared', () => {
  it('is attached to the instance that is there, while another is not yet', async () => {
    const slow = Promise.withResolvers<void>();
    let creates = 0;
    const { orchestrator, volume, instance, online, attach } = await start({
      wrapDriver: (driver) => ({
        ...driver,
        create: async (spec, cookie) => {
          if (++creates > 1 && spec.hostname.startsWith('slow')) await slow.promise;
          return driver.create(spec, cookie);
        },
      }),
    });
    await using _ = orchestrator;
    const type = orchestrator.catalog.regions
      .get('eu-frankfurt')
      ?.volumeTypes.find(({ shareable }) => shareable)?.name;
    const id = await volume({ type });
    const ready = await online();
    const late = await instance({ name: 'slow' });
    await attach(id, late);
    await attach(id, ready);
    const attached = async () =>
      (await orchestrator.request('GET', `/volumes/${id}`)).body['attached_instance_ids'];
    await until('it is attached to the one', async () => String(await attached()) === ready, 5_000);
    slow.resolve();
    await until('it is attached to both', async () => ((await attached()) as string[]).length === 2);
  });
});

describe('a volume that is being deleted', () => {
  it('is deleted all the same when its instance ends meanwhile [volume-delete-instance-ends]', async () => {
    const { orchestrator, available, online, attach, detach, remove, setPlan, heal, waitForVolume } =
      await start();
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    await attach(id, machine);
    await waitForVolume(id, 'ATTACHED');
    setPlan(({ method }) =>
      method === 'volumes.detach' || method === 'volumes.destroy' ? 'fail-before' : 'none',
    );
    await detach(id);
    await remove(`/volumes/${id}`);
    await waitForVolume(id, 'DELETING');
    await remove(`/instances/${machine}`);
    await orchestrator.waitFor(machine, 'GONE');
    heal();
    await waitForVolume(id, 'GONE');
    expect(await orchestrator.simulator.volumes?.list()).toEqual({ answer: 'listed', items: [] });
  });
});

describe('on a platform that attaches only while the machine is stopped', () => {
  it('a detach of an ONLINE instance stops and starts it too', async () => {
    const { orchestrator, available, online, attach, detach, waitForVolume } = await start({
      platform: cold,
    });
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    await attach(id, machine);
    await waitForVolume(id, 'ATTACHED');
    await orchestrator.waitFor(machine, 'ONLINE');
    await detach(id);
    await orchestrator.waitFor(machine, 'STOPPING');
    await waitForVolume(id, 'AVAILABLE');
    await orchestrator.waitFor(machine, 'ONLINE');
    expect(await orchestrator.store.read.claims.isHeldBy(machine)).toBe(true);
  });

  it('an attachment that is taken back while the machine stops has it started again', async () => {
    const { orchestrator, available, online, attach, detach, settled } = await start({ platform: cold });
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    await attach(id, machine);
    await orchestrator.waitFor(machine, 'STOPPING');
    await detach(id);
    await settled(id);
    await orchestrator.waitFor(machine, 'ONLINE');
  });

  it('two volumes are attached in one cycle, and the machine is started once', async () => {
    const { orchestrator, available, online, attach, waitForVolume } = await start({ platform: cold });
    await using _ = orchestrator;
    const machine = await online();
    const ids = [await available(), await available()];
    const seen: string[] = [];
    orchestrator.store.subscribe({
      instancesChanged: (records) => seen.push(...records.map(({ status }) => status)),
    });
    await Promise.all(ids.map((id) => attach(id, machine)));
    for (const id of ids) await waitForVolume(id, 'ATTACHED');
    await orchestrator.waitFor(machine, 'ONLINE');
    expect(seen.filter((status, index) => status !== seen[index - 1])).toEqual([
      'STOPPING',
      'STOPPED',
      'ONLINE',
    ]);
  });

  it('a volume that the platform refuses to make leaves no instance stopped', async () => {
    let isRefused = false;
    const { orchestrator, available, volume, online, attach, waitForVolume } = await start({
      platform: cold,
      wrapDriver: (driver) =>
        withVolumes(driver, (volumes) => ({
          create: async (spec, cookie): Promise<Step<never>> => {
            if (spec.sizeGb !== 123) return (await volumes.create(spec, cookie)) as Step<never>;
            return isRefused
              ? { outcome: 'failed', code: 'quota', sideEffect: 'none', detail: 'no more' }
              : { outcome: 'pending', cookie: 'c', pollAfterMs: 10 };
          },
        })),
    });
    await using _ = orchestrator;
    const machine = await online();
    const good = await available();
    const bad = await volume({ size_gb: 123, instance_ids: [machine] });
    await attach(good, machine);
    await waitForVolume(good, 'ATTACHED');
    isRefused = true;
    await waitForVolume(bad, 'ERROR');
    await orchestrator.waitFor(machine, 'ONLINE');
  });

  it('a volume that is deleted in the middle of the cycle leaves no instance stopped', async () => {
    const {
      orchestrator,
      available,
      online,
      attach,
      detach,
      remove,
      setPlan,
      heal,
      waitForVolume,
      hasCalled,
    } = await start({ platform: cold });
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    setPlan(({ method }) =>
      method === 'volumes.attach' || method === 'volumes.detach' ? 'fail-before' : 'none',
    );
    await attach(id, machine);
    await until('the attach is tried', () => hasCalled('volumes.attach'));
    await detach(id);
    await remove(`/volumes/${id}`);
    await waitForVolume(id, 'GONE');
    heal();
    await orchestrator.waitFor(machine, 'ONLINE');
  });

  it('a machine that is looked at while it is stopped for a volume is started all the same', async () => {
    let isListEmpty = false;
    let getsMay: Promise<void> | undefined;
    const attachMay = Promise.withResolvers<void>();
    const { orchestrator, available, online, attach, waitForVolume, hasCalled } = await start({
      platform: { ...cold, volume_ms: [0, 0] },
      reconcile: { watch_interval_s: 0.02, accept_empty_after_s: 2 },
      wrapDriver: (driver) => ({
        ...withVolumes(driver, (volumes) => ({
          attach: async (ref, machine, cookie) => {
            await attachMay.promise;
            return volumes.attach(ref, machine, cookie);
          },
        })),
        list: async () => (isListEmpty ? { answer: 'listed', items: [] } : driver.list()),
        get: async (ref) => {
          await getsMay;
          return driver.get(ref);
        },
      }),
    });
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    const looked = Promise.withResolvers<void>();
    await attach(id, machine);
    await until('the attach is called', () => hasCalled('volumes.attach'));
    getsMay = looked.promise;
    isListEmpty = true;
    await until('the machine is looked at', async () => {
      return (await orchestrator.store.read.work.of(machine))?.kind === 'observe';
    });
    attachMay.resolve();
    await waitForVolume(id, 'ATTACHED');
    isListEmpty = false;
    looked.resolve();
    await orchestrator.waitFor(machine, 'ONLINE');
  });

  it('an instance that could not be started again is never stopped for a volume', async () => {
    const { orchestrator, available, online, attach, settled, waitForVolume, hasCalled } = await start({
      platform: cold,
      changeOffer: (offer) => ({ ...offer, resumable: false }),
    });
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    await attach(id, machine);
    await waitForVolume(id, 'AVAILABLE');
    await settled(id);
    expect(hasCalled('stop')).toBe(false);
    expect((await orchestrator.request('GET', `/instances/${machine}`)).body['status']).toBe('ONLINE');
  });

  it('an attachment that never succeeds does not hold the machine stopped', async () => {
    const { orchestrator, volume, online, setPlan, waitForVolume } = await start({
      platform: cold,
      onlineWithinMs: 1_000,
    });
    await using _ = orchestrator;
    const machine = await online();
    setPlan(({ method }) => (method === 'volumes.attach' ? 'fail-before' : 'none'));
    const id = await volume({ instance_ids: [machine] });
    await orchestrator.waitFor(machine, 'STOPPED');
    await orchestrator.waitFor(machine, 'ONLINE');
    await waitForVolume(id, 'AVAILABLE');
  });

  it('an attachment to a stopped machine that has failed is taken back [attach-machine-failed]', async () => {
    let isBroken = false;
    const conflict = {
      outcome: 'failed',
      code: 'conflict',
      sideEffect: 'none',
      detail: 'it is broken',
    } as const;
    const { orchestrator, available, online, attach, waitForVolume } = await start({
      platform: cold,
      wrapDriver: (driver) => ({
        ...withVolumes(driver, (volumes) => ({
          attach: async (...given) => (isBroken ? conflict : volumes.attach(...given)),
        })),
        get: async (ref) => {
          const found = await driver.get(ref);
          if (!isBroken || found.answer !== 'observed') return found;
          return { answer: 'observed', value: { ...found.value, power: 'failed' } };
        },
      }),
    });
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    await orchestrator.request('POST', `/instances/${machine}/stop`);
    await orchestrator.waitFor(machine, 'STOPPED');
    isBroken = true;
    await attach(id, machine);
    await waitForVolume(id, 'AVAILABLE');
    expect(await orchestrator.store.read.volumes.attachmentsOfVolume(id)).toEqual([]);
  });
});
