import { describe, expect, it } from 'vitest';
import { type FaultyDriver, withFaults } from '../../src/drivers/kit/faults.ts';
import type { ObservedMachine, PlatformDriver, Step } from '../../src/orchestrator/model/platform-driver.ts';
import type { DriverCall, Fault } from '../../src/platform-model/call-faults.ts';
import { silentLog } from '../../testing/log.ts';
import { anOrder } from '../../testing/orchestrator-rows.ts';
import { instanceRequest } from '../../testing/requests.ts';
import { until } from '../../testing/until.ts';
import { startTestOrchestrator, type TestOptions, type TestOrchestrator } from '../support/orchestrator.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

async function create({ request }: TestOrchestrator): Promise<string> {
  const { status, body, text } = await request('POST', '/instances', { body: instanceRequest() });
  if (status !== 201) throw new Error(text);
  return String(body['id']);
}

async function online(orchestrator: TestOrchestrator): Promise<string> {
  const id = await create(orchestrator);
  await orchestrator.waitFor(id, 'ONLINE');
  return id;
}

async function startWithFaults(plan: (call: DriverCall) => Fault, options: TestOptions = {}) {
  let current = plan;
  let faulty: FaultyDriver | undefined;
  const { wrapDriver = (driver) => driver } = options;
  const orchestrator = await startTestOrchestrator({
    ...options,
    wrapDriver: (driver) => {
      faulty = withFaults(wrapDriver(driver), (call) => current(call));
      return faulty;
    },
  });
  return {
    orchestrator,
    count: (method: DriverCall['method']) =>
      faulty?.calls.filter((call) => call.method === method).length ?? 0,
    setPlan: (next: typeof plan) => {
      current = next;
    },
    release: () => {
      current = () => 'none';
      faulty?.release();
    },
  };
}

const failed = (code: 'gone' | 'conflict' | 'capacity' | 'unknown_outcome'): Step<never> => ({
  outcome: 'failed',
  code,
  sideEffect: 'none',
  detail: 'as the test says',
});
const post = ({ request }: TestOrchestrator, id: string, action: string) =>
  request('POST', `/instances/${id}/${action}`);
const statusOf = async ({ request }: TestOrchestrator, id: string): Promise<unknown> =>
  (await request('GET', `/instances/${id}`)).body['status'];
const listed = async (driver: PlatformDriver): Promise<string[]> => {
  const listing = await driver.list();
  return listing.answer === 'listed' ? listing.items.map(({ ref }) => ref) : ['unknown'];
};

describe('a step that breaks off', () => {
  it('hands its cookie to no other step', async () => {
    const cookies: (string | null)[] = [];
    let breaksOff = false;
    const stopMay = Promise.withResolvers<void>();
    await using orchestrator = await startTestOrchestrator({
      platform: { stop_ms: [2_000, 2_000] },
      wrapDriver: (driver) => ({
        ...driver,
        stop: async (ref, cookie) => {
          if (cookie === null) return { outcome: 'pending', cookie: 'of-the-stop', pollAfterMs: 1 };
          await stopMay.promise;
          return driver.stop(ref, cookie);
        },
        destroy: (ref, cookie) => {
          cookies.push(cookie);
          return driver.destroy(ref, null, anOrder);
        },
      }),
      failpoint: (name) => {
        if (breaksOff && name === 'stop:after-call') throw new Error('broken off by the test');
      },
    });
    const id = await online(orchestrator);
    await post(orchestrator, id, 'stop');
    await until('the stop is called again', async () => {
      return (await orchestrator.store.read.work.of(id))?.attempt === 2;
    });
    await orchestrator.request('DELETE', `/instances/${id}`);
    breaksOff = true;
    stopMay.resolve();
    await orchestrator.waitFor(id, 'GONE');
    expect(cookies).not.toContain('of-the-stop');
  });
});

describe('a stop', () => {
  it('of a machine that the platform lost for a moment goes on', async () => {
    let stops = 0;
    await using orchestrator = await startTestOrchestrator({
      wrapDriver: (driver) => ({
        ...driver,
        stop: async (ref, cookie) => (++stops === 1 ? failed('gone') : driver.stop(ref, cookie)),
      }),
    });
    const id = await online(orchestrator);
    await post(orchestrator, id, 'stop');
    await orchestrator.waitFor(id, 'STOPPED');
  });

  it('of a machine that has failed ends in ERROR, not in STOPPING for ever, and the machine stays until its DELETE', async () => {
    let hasFailed = false;
    await using orchestrator = await startTestOrchestrator({
      reconcile: { watch_interval_s: 60 },
      losses: { keep_disks_hours: 0 },
      wrapDriver: (driver) => ({
        ...driver,
        get: async (ref) => {
          const found = await driver.get(ref);
          if (found.answer !== 'observed' || !hasFailed) return found;
          return { ...found, value: { ...found.value, power: 'failed', detail: 'a GPU is off the bus' } };
        },
        stop: async (ref, cookie) => (hasFailed ? failed('conflict') : driver.stop(ref, cookie)),
      }),
    });
    const id = await online(orchestrator);
    hasFailed = true;
    await post(orchestrator, id, 'stop');
    expect((await orchestrator.waitFor(id, 'ERROR'))['error']).toBe('The machine of this instance failed.');
    expect(await listed(orchestrator.simulator)).toHaveLength(1);
    expect(await orchestrator.store.read.claims.isHeldBy(id)).toBe(true);
    await orchestrator.request('DELETE', `/instances/${id}`);
    await orchestrator.waitFor(id, 'GONE');
    expect(await listed(orchestrator.simulator)).toEqual([]);
  });
});

describe('a spot machine that is reclaimed while it stops', () => {
  it('is destroyed like one that runs', async () => {
    await using orchestrator = await startTestOrchestrator({
      platform: { stop_ms: [300, 300] },
      reconcile: { accept_empty_after_s: 2 },
    });
    const { body } = await orchestrator.request('POST', '/instances', {
      body: instanceRequest({ configuration_id: 'a100-sxm-1x-spot' }),
    });
    const id = String(body['id']);
    await orchestrator.waitFor(id, 'ONLINE');
    await post(orchestrator, id, 'stop');
    const ref = (await orchestrator.store.read.instances.byId(id))?.ownerRef ?? '';
    await orchestrator.simulator.destroy(ref, null, anOrder);
    await orchestrator.waitFor(id, 'GONE');
    expect(await orchestrator.store.read.claims.isHeldBy(id)).toBe(false);
  });
});

describe('a start', () => {
  it('of a machine that the platform lost for a moment goes on', async () => {
    let starts = 0;
    await using orchestrator = await startTestOrchestrator({
      wrapDriver: (driver) => ({
        ...driver,
        start: async (ref, cookie) => (++starts === 1 ? failed('gone') : driver.start(ref, cookie)),
      }),
    });
    const id = await online(orchestrator);
    await post(orchestrator, id, 'stop');
    await orchestrator.waitFor(id, 'STOPPED');
    await post(orchestrator, id, 'start');
    await orchestrator.waitFor(id, 'ONLINE');
  });

  it('of a machine that is gone is OFFLINE, and holds its capacity no longer than losses.hold_claims_minutes', async () => {
    await using orchestrator = await startTestOrchestrator({
      reconcile: { watch_interval_s: 60, accept_empty_after_s: 2 },
      losses: { hold_claims_minutes: 0 },
    });
    const id = await online(orchestrator);
    await post(orchestrator, id, 'stop');
    await orchestrator.waitFor(id, 'STOPPED');
    const ref = (await orchestrator.store.read.instances.byId(id))?.ownerRef ?? '';
    await until(
      'it is gone',
      async () => (await orchestrator.simulator.destroy(ref, null, anOrder)).outcome === 'done',
    );
    await post(orchestrator, id, 'start');
    await orchestrator.waitFor(id, 'OFFLINE');
    await until('its capacity is free', async () => !(await orchestrator.store.read.claims.isHeldBy(id)));
  });
});

describe('a create', () => {
  it('that never succeeds and never answers ends in ERROR when its window does', async () => {
    const { orchestrator, count } = await startWithFaults(
      ({ method }) => (method === 'create' ? 'fail-before' : 'none'),
      { onlineWithinMs: 400 },
    );
    await using _ = orchestrator;
    const id = await create(orchestrator);
    await orchestrator.waitFor(id, 'ERROR');
    await until('its capacity is free', async () => !(await orchestrator.store.read.claims.isHeldBy(id)));
    expect(count('create')).toBeGreaterThan(1);
  });

  it('makes no machine after its window, when the platform can be asked again', async () => {
    const { orchestrator, setPlan, release, count } = await startWithFaults(
      ({ method }) => (method === 'create' ? 'fail-before' : method === 'get' ? 'unknown' : 'none'),
      { onlineWithinMs: 200 },
    );
    await using _ = orchestrator;
    const id = await create(orchestrator);
    await until('the platform was asked', () => count('get') > 0);
    setPlan(({ method }) => (method === 'get' ? 'unknown' : 'none'));
    const deadline = Date.now() + 300;
    await until('the window is over', () => Date.now() > deadline);
    // What it may have made waits for its removal, the client does not.
    await orchestrator.waitFor(id, 'ERROR');
    const before = count('create');
    release();
    await until('its capacity is free', async () => !(await orchestrator.store.read.claims.isHeldBy(id)));
    expect(count('create')).toBe(before);
  });

  it('whose answer comes too late leaves no machine behind its DELETE [create-late-after-delete]', async () => {
    const { orchestrator, release, count } = await startWithFaults(
      ({ method }) => (method === 'create' ? 'hang' : 'none'),
      {
        reconcile: { lease_s: 0.2 },
        // A platform that compares neither deadline nor fence.
        wrapDriver: (driver) => ({ ...driver, create: (spec, cookie) => driver.create(spec, cookie) }),
      },
    );
    await using _ = orchestrator;
    const id = await create(orchestrator);
    await until('it is called', () => count('create') === 1);
    await orchestrator.request('DELETE', `/instances/${id}`);
    await orchestrator.waitFor(id, 'GONE');
    // The platform carries the create out now.
    release();
    await until('it was made and removed', async () => count('destroy') > 1);
    await until('nothing is left', async () => (await listed(orchestrator.simulator)).length === 0);
  });

  it('that turns up late, after a look said that it is gone, is adopted [create-late-adopted]', async () => {
    let isLate = true;
    let creates = 0;
    await using berth = await startPlainOrchestrator(() => 'none', {
      manifest: { createVisibleWithinMs: 6_000 },
      wrapDriver: (driver) => ({
        ...driver,
        create: async (spec, cookie) => {
          if (++creates > 1) return driver.create(spec, cookie);
          berth.clock.setTimer(4_000, () => {
            isLate = false;
            void driver.create(spec, cookie);
          });
          throw new Error('the answer was lost');
        },
      }),
    });
    await berth.passUntil(`/instances/${await berth.create()}`, 'ONLINE');
    expect([isLate, creates]).toEqual([false, 1]);
  });

  it('that was sent after the DELETE and turns up late is removed [create-late-removed]', async () => {
    const getMay = Promise.withResolvers<void>();
    let creates = 0;
    let gets = 0;
    await using berth = await startPlainOrchestrator(() => 'none', {
      manifest: { createVisibleWithinMs: 3_000 },
      wrapDriver: (driver) => ({
        ...driver,
        get: async (ref) => {
          if (++gets === 1) await getMay.promise;
          return driver.get(ref);
        },
        create: async (spec, cookie) => {
          if (++creates === 1) throw new Error('did not reach the platform');
          berth.clock.setTimer(2_500, () => void driver.create(spec, cookie));
          throw new Error('the answer was lost');
        },
      }),
    });
    const id = await berth.create();
    while (gets === 0) await berth.clock.advance(100);
    await berth.orchestrator.request('DELETE', `/instances/${id}`);
    await berth.clock.advance(4_000);
    getMay.resolve();
    await berth.passUntil(`/instances/${id}`, 'GONE');
    await berth.clock.advance(4_000);
    expect(berth.platform.machines.size).toBe(0);
  });
});

describe('a machine that powers itself off before its SSH is proved', () => {
  /** Off as soon as the first call of the method is done. */
  const poweringOff =
    (method: 'create' | 'start', changes: Partial<PlatformDriver> = {}) =>
    (driver: PlatformDriver): PlatformDriver => {
      let isOff = false;
      const thenOff = async (step: Step<ObservedMachine>): Promise<Step<ObservedMachine>> => {
        if (step.outcome !== 'done' || isOff) return step;
        isOff = true;
        const stop = () => driver.stop(step.value.ref, null);
        await until('the machine is off', async () => (await stop()).outcome === 'done');
        return step;
      };
      return {
        ...driver,
        ...(method === 'create' && {
          create: async (spec, cookie) => thenOff(await driver.create(spec, cookie)),
        }),
        ...(method === 'start' && { start: async (ref, cookie) => thenOff(await driver.start(ref, cookie)) }),
        ...changes,
      };
    };

  it('is started again while its instance is PROVISIONING', async () => {
    await using orchestrator = await startTestOrchestrator({ wrapDriver: poweringOff('create') });
    const id = await create(orchestrator);
    await orchestrator.waitFor(id, 'ONLINE', 'ERROR');
    expect(await statusOf(orchestrator, id)).toBe('ONLINE');
  });

  it('ends a create that may not start it again in ERROR', async () => {
    await using orchestrator = await startTestOrchestrator({
      wrapDriver: poweringOff('create'),
      changeOffer: (offer) => ({ ...offer, resumable: false }),
    });
    const id = await create(orchestrator);
    expect((await orchestrator.waitFor(id, 'ERROR', 'ONLINE'))['error']).toMatch(/powered itself off/);
    await until('it is gone', async () => (await listed(orchestrator.simulator)).length === 0);
  });

  it.each(['capacity', 'unknown_outcome'] as const)(
    'and cannot be started again (%s) is ERROR in the end',
    async (code) => {
      await using orchestrator = await startTestOrchestrator({
        onlineWithinMs: 1_000,
        wrapDriver: poweringOff('create', { start: async () => failed(code) }),
      });
      const id = await create(orchestrator);
      await orchestrator.waitFor(id, 'ERROR');
      await until('it is gone', async () => (await listed(orchestrator.simulator)).length === 0);
    },
  );

  it('is not given up while the platform cannot be asked', async () => {
    const { orchestrator, setPlan, release, count } = await startWithFaults(() => 'none', {
      onlineWithinMs: 5_000,
      wrapDriver: poweringOff('create', { start: async () => failed('unknown_outcome') }),
    });
    await using _ = orchestrator;
    const id = await create(orchestrator);
    await until('it is started again', () => count('start') > 0);
    setPlan(({ method }) => (method === 'get' ? 'unknown' : 'none'));
    const { clock } = orchestrator;
    const deadline = clock.now() + 5_000;
    const before = count('get');
    await until('the window is over', () => clock.now() > deadline && count('get') > before);
    expect(await statusOf(orchestrator, id)).toBe('PROVISIONING');
    release();
    await orchestrator.waitFor(id, 'ERROR');
  });

  it('takes a start back at once, and its capacity is free', async () => {
    await using orchestrator = await startTestOrchestrator({ wrapDriver: poweringOff('start') });
    const id = await online(orchestrator);
    await post(orchestrator, id, 'stop');
    await orchestrator.waitFor(id, 'STOPPED');
    await post(orchestrator, id, 'start');
    await until('its start is over', async () => (await orchestrator.store.read.work.of(id)) === null);
    expect([await statusOf(orchestrator, id), await orchestrator.store.read.claims.isHeldBy(id)]).toEqual([
      'STOPPED',
      false,
    ]);
  });
});

describe('the reconciler', () => {
  it('waits in peace while every place is taken', async () => {
    let claims = 0;
    const { orchestrator, release, count } = await startWithFaults(
      ({ method }) => (method === 'create' ? 'hang' : 'none'),
      {
        changeOffer: (offer) => ({
          ...offer,
          placements: offer.placements.map((placement) => ({ ...placement, units: 100 })),
        }),
        wrapStore: (store) => ({
          ...store,
          nextWorkAt: (platform) => {
            claims++;
            return store.nextWorkAt(platform);
          },
        }),
      },
    );
    await using _ = orchestrator;
    await Promise.all(Array.from({ length: 70 }, () => create(orchestrator)));
    await until('every place is taken', () => count('create') === 64);
    const { clock } = orchestrator;
    const [before, from] = [claims, clock.now()];
    await until('a third of a second has passed', () => clock.now() - from >= 300);
    expect(claims - before).toBeLessThan(20);
    release();
  });

  it('begins no step once it is stopped', async () => {
    let isClosed = false;
    const late: string[] = [];
    let claimMay: Promise<void> | undefined;
    let isClaiming = false;
    const claimed = Promise.withResolvers<void>();
    {
      await using orchestrator = await startTestOrchestrator({
        wrapStore: (store) => ({
          ...store,
          claimWork: async (claim) => {
            const leases = await store.claimWork(claim);
            if (leases.length > 0 && claimMay !== undefined) {
              isClaiming = true;
              await claimMay;
            }
            return leases;
          },
          close: () => {
            isClosed = true;
            return store.close();
          },
        }),
        log: {
          ...silentLog,
          error: (_fields, message) => {
            if (isClosed) late.push(message);
          },
        },
      });
      claimMay = claimed.promise;
      await create(orchestrator);
      await until('work is being claimed', () => isClaiming);
      setTimeout(() => claimed.resolve(), 50);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(late).toEqual([]);
  });
});
