import { describe, expect, it } from 'vitest';
import type { PlatformDriver, Power } from '../../src/orchestrator/model/platform-driver.ts';
import type { SshProbe } from '../../src/ports/ssh-probe.ts';
import { everyProbeWorks, plainEndpoint } from '../support/doubles/plain-platform.ts';
import { type Plan, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';

type Setup = Awaited<ReturnType<typeof startPlainOrchestrator>>;
type Options = Parameters<typeof startPlainOrchestrator>[1];

/** With one instance that is ONLINE. */
async function startOnline(options: Options = {}) {
  const setup = await startPlainOrchestrator(() => 'none', options);
  const id = await setup.create();
  await setup.passUntil(`/instances/${id}`, 'ONLINE');
  const { ownerRef: ref = '' } = (await setup.orchestrator.store.read.instances.byId(id)) ?? {};
  const restart = () => setup.post(`/x/instances/${id}/restart`);
  const isRestarting = async () => (await setup.read(`/x/instances/${id}/restart`))['restarting'];
  return {
    setup,
    id,
    ref,
    restart,
    isRestarting,
    statusNow: async () => (await setup.read(`/instances/${id}`))['status'],
    restarts: () => setup.platform.bootsOf(ref) - 1 - setup.count('start'),
    /** Lets time pass until the restart is over; every status on the way, and how long it took. */
    passRestart: async (withinMs = 700_000) => {
      const begunAt = setup.clock.now();
      const seen = new Set<unknown>();
      while (await isRestarting()) {
        seen.add((await setup.read(`/instances/${id}`))['status']);
        if (setup.clock.now() - begunAt > withinMs) throw new Error('it restarts for ever');
        await setup.clock.advance(100);
      }
      return { seen: [...seen], tookMs: setup.clock.now() - begunAt };
    },
    [Symbol.asyncDispose]: () => setup[Symbol.asyncDispose](),
  };
}

const codeOf = ({ body }: { body: Record<string, unknown> }) =>
  (body['error'] as { code?: string } | undefined)?.code;

/** Answers only while `isOpen` says so. */
function probeWhile(isOpen: () => boolean, probe: SshProbe = everyProbeWorks): SshProbe {
  return {
    probe: async (...given) =>
      isOpen() ? probe.probe(...given) : { ok: false, step: 'connect', detail: 'connection refused' },
  };
}

/** The platform shows this power in place of its own; undefined: its own. */
function showing(power: () => Power | undefined) {
  return (driver: PlatformDriver): PlatformDriver => ({
    ...driver,
    get: async (ref) => {
      const found = await driver.get(ref);
      if (found.answer !== 'observed') return found;
      return { ...found, value: { ...found.value, power: power() ?? found.value.power } };
    },
    list: async () => {
      const listing = await driver.list();
      if (listing.answer !== 'listed') return listing;
      const items = listing.items.map((item) => ({ ...item, power: power() ?? item.power }));
      return { ...listing, items };
    },
  });
}

describe('a restart', () => {
  it('is accepted, is in flight until SSH is proved again, and leaves the instance as it was', async () => {
    let isOpen = true;
    await using given = await startOnline({ probe: probeWhile(() => isOpen) });
    const { setup, id } = given;
    const before = await setup.read(`/instances/${id}`);
    isOpen = false;
    const reply = await given.restart();
    expect([reply.status, reply.body]).toEqual([200, before]);
    const since = new Date(setup.clock.now()).toISOString();
    await setup.clock.advance(20_000);
    expect(await setup.read(`/x/instances/${id}/restart`)).toEqual({ restarting: true, since });
    expect(await setup.read(`/instances/${id}`)).toEqual(before);
    isOpen = true;
    expect((await given.passRestart()).tookMs).toBeLessThan(5_000);
    expect(await setup.read(`/x/instances/${id}/restart`)).toEqual({ restarting: false });
    expect([await setup.read(`/instances/${id}`), given.restarts()]).toEqual([before, 1]);
  });

  it('can follow another, and is another for the platform', async () => {
    await using given = await startOnline();
    for (const count of [1, 2]) {
      expect((await given.restart()).status).toBe(200);
      await given.passRestart();
      expect(given.restarts()).toBe(count);
    }
  });

  it.each<[string, Plan]>([
    [
      'whose order does not arrive',
      ({ method }, nth) => (method === 'restart' && nth < 3 ? 'fail-before' : 'none'),
    ],
    ['whose answer is lost', ({ method }, nth) => (method === 'restart' && nth < 3 ? 'fail-after' : 'none')],
    [
      'whose answer is late',
      ({ method }, nth) => (method === 'restart' && nth === 1 ? { kind: 'delay', ms: 60_000 } : 'none'),
    ],
    [
      'that finds the platform silent',
      ({ method }, nth) => {
        // Takes a while, so that it is read while it is in flight.
        if (method === 'restart' && nth === 1) return { kind: 'delay', ms: 1_000 };
        return method === 'get' && nth < 9 ? 'unknown' : 'none';
      },
    ],
  ])('%s is carried out once [restart-once]', async (_title, plan) => {
    await using given = await startOnline();
    const before = given.setup.count('get');
    given.setup.setPlan((call, nth) => plan(call, call.method === 'get' ? nth - before : nth));
    await given.restart();
    const { seen } = await given.passRestart();
    expect([seen, await given.statusNow(), given.restarts()]).toEqual([['ONLINE'], 'ONLINE', 1]);
  });

  it('that is broken off after its order was sent is ordered again as the same [restart-broken-off]', async () => {
    let breaks = 2;
    await using given = await startOnline({
      failpoint: (name) => {
        if (name === 'restart:after-call' && breaks-- > 0) throw new Error('broken off by the test');
      },
    });
    await given.restart();
    await given.passRestart();
    expect([given.setup.count('restart'), given.restarts()]).toEqual([3, 1]);
  });

  it('hands the driver its cookie back, and not to what follows', async () => {
    const cookies: (string | null)[] = [];
    let polls = 0;
    await using given = await startOnline({
      wrapDriver: (driver) => ({
        ...driver,
        restart: async (ref, id, cookie) => {
          cookies.push(cookie);
          if (++polls < 3) return { outcome: 'pending', cookie: `poll-${polls}`, pollAfterMs: 500 };
          return driver.restart(ref, id, null);
        },
        destroy: async (ref, cookie) => {
          cookies.push(cookie);
          return driver.destroy(ref, cookie, anOrder);
        },
      }),
    });
    await given.restart();
    await given.passRestart();
    expect(cookies).toEqual([null, 'poll-1', 'poll-2']);
    polls = 0;
    await given.restart();
    await given.setup.orchestrator.request('DELETE', `/instances/${given.id}`);
    await given.setup.passUntil(`/instances/${given.id}`, 'GONE');
    expect(cookies.at(-1)).toBeNull();
  });

  it.each(['stopped', 'stopping', 'starting', 'building'] as const)(
    'on a platform that shows the machine %s meanwhile is no stop [restart-shown-stopped]',
    async (power) => {
      let shown: Power | undefined;
      let endsAt = Number.POSITIVE_INFINITY;
      await using given = await startOnline({
        wrapDriver: (driver) => ({
          ...showing(() => shown)(driver),
          restart: async (ref, id, cookie) => {
            if (given.setup.clock.now() < endsAt)
              return { outcome: 'pending', cookie: 'x', pollAfterMs: 1_000 };
            shown = undefined;
            return driver.restart(ref, id, cookie);
          },
        }),
      });
      endsAt = given.setup.clock.now() + 40_000;
      shown = power;
      await given.restart();
      const { seen, tookMs } = await given.passRestart();
      expect([seen, await given.statusNow()]).toEqual([['ONLINE'], 'ONLINE']);
      expect(tookMs).toBeGreaterThanOrEqual(40_000);
    },
  );

  it('comes back at the address that the platform gives then', async () => {
    await using given = await startOnline();
    given.setup.platform.change(given.ref, { endpoint: { ...plainEndpoint, publicIp: '192.0.2.7' } });
    await given.restart();
    await given.passRestart();
    expect((await given.setup.read(`/instances/${given.id}`))['public_ip']).toBe('192.0.2.7');
  });

  it('whose SSH never answers again is given up after its window, and the instance stays ONLINE', async () => {
    let isOpen = true;
    await using given = await startOnline({ probe: probeWhile(() => isOpen), onlineWithinMs: 120_000 });
    isOpen = false;
    await given.restart();
    const { seen, tookMs } = await given.passRestart();
    expect([seen, await given.statusNow()]).toEqual([['ONLINE'], 'ONLINE']);
    expect(tookMs).toBeGreaterThanOrEqual(120_000);
    expect(tookMs).toBeLessThan(130_000);
    expect((await given.restart()).status).toBe(200);
  });

  it('is not proved by a host with another key', async () => {
    let key = 'SHA256:plain';
    const probe: SshProbe = {
      probe: async (_target, _keys, pinned) =>
        pinned === undefined || pinned === key
          ? { ok: true, hostKeyFingerprint: key }
          : { ok: false, step: 'host_key', detail: 'another key' },
    };
    await using given = await startOnline({ probe, onlineWithinMs: 60_000 });
    key = 'SHA256:other';
    await given.restart();
    expect((await given.passRestart()).tookMs).toBeGreaterThanOrEqual(60_000);
    expect(await given.statusNow()).toBe('ONLINE');
  });

  it('that the platform refuses for good is given up at once', async () => {
    await using given = await startOnline();
    given.setup.setPlan(({ method }) =>
      method === 'restart'
        ? { kind: 'misclaim', code: 'unsupported', sideEffect: 'none', isDone: false }
        : 'none',
    );
    await given.restart();
    expect((await given.passRestart()).tookMs).toBeLessThan(1_000);
    expect([await given.statusNow(), given.setup.count('restart')]).toEqual(['ONLINE', 1]);
  });

  it('of a machine that its guest has powered off ends STOPPED [restart-guest-powers-off]', async () => {
    await using given = await startOnline({ reconcile: { watchIntervalMs: 3_600_000 } });
    given.setup.platform.change(given.ref, { power: 'stopped' });
    await given.restart();
    await given.setup.passUntil(`/instances/${given.id}`, 'STOPPED', 5_000);
    expect([await given.isRestarting(), given.restarts()]).toEqual([false, 0]);
  });

  it('after which the machine goes down by itself ends STOPPED [restart-then-down]', async () => {
    let isOpen = true;
    await using given = await startOnline({ probe: probeWhile(() => isOpen) });
    isOpen = false;
    await given.restart();
    await given.setup.clock.advance(1_000);
    given.setup.platform.change(given.ref, { power: 'stopped' });
    await given.setup.passUntil(`/instances/${given.id}`, 'STOPPED', 10_000);
    expect(await given.isRestarting()).toBe(false);
  });

  it('of a machine that is gone ends in ERROR', async () => {
    await using given = await startOnline({ reconcile: { watchIntervalMs: 3_600_000 } });
    // Another one: a platform that shows nothing at all is not accepted at once.
    await given.setup.passUntil(`/instances/${await given.setup.create()}`, 'ONLINE');
    given.setup.platform.lose(given.ref);
    await given.restart();
    await given.setup.passUntil(`/instances/${given.id}`, 'ERROR');
    expect(await given.isRestarting()).toBe(false);
  });

  it('of a machine that fails over it ends in ERROR', async () => {
    let isOpen = true;
    await using given = await startOnline({ probe: probeWhile(() => isOpen) });
    isOpen = false;
    await given.restart();
    await given.setup.clock.advance(1_000);
    given.setup.platform.change(given.ref, { power: 'failed' });
    await given.setup.passUntil(`/instances/${given.id}`, 'ERROR', 10_000);
    expect((await given.setup.read(`/instances/${given.id}`))['error']).toBe(
      'The machine of this instance failed.',
    );
  });
});

describe('while a restart is in flight', () => {
  const inFlight = async () => {
    const given = await startOnline();
    given.setup.setPlan(({ method }) => (method === 'restart' ? 'hang' : 'none'));
    await given.restart();
    await given.setup.clock.advance(500);
    return given;
  };

  it('another one and a stop are 409, and a start too', async () => {
    await using given = await inFlight();
    const post = (path: string) => given.setup.post(path);
    expect(codeOf(await given.restart())).toBe('operation_in_progress');
    expect(codeOf(await post(`/instances/${given.id}/stop`))).toBe('operation_in_progress');
    expect(codeOf(await post(`/instances/${given.id}/start`))).toBe('invalid_state');
    expect([await given.isRestarting(), await given.statusNow()]).toEqual([true, 'ONLINE']);
  });

  it('a DELETE wins, also over the order that is out', async () => {
    await using given = await inFlight();
    const { status, body } = await given.setup.orchestrator.request('DELETE', `/instances/${given.id}`);
    expect([status, body['status']]).toEqual([200, 'DESTROYING']);
    expect(await given.isRestarting()).toBe(false);
    await given.setup.passUntil(`/instances/${given.id}`, 'GONE', 120_000);
    expect(given.setup.platform.machines.size).toBe(0);
    expect((await given.setup.orchestrator.request('GET', `/x/instances/${given.id}/restart`)).status).toBe(
      404,
    );
    expect((await given.restart()).status).toBe(404);
  });

  it('a volume that needs the machine stopped waits for the end of it', async () => {
    let isOpen = true;
    await using given = await startOnline({
      probe: probeWhile(() => isOpen),
      manifest: { attachVolume: 'cold', resizeVolume: 'detached' },
    });
    const volume = await given.setup.createVolume();
    await given.setup.passUntil(`/volumes/${volume}`, 'AVAILABLE');
    isOpen = false;
    await given.restart();
    await given.setup.post(`/volumes/${volume}/attach`, { instance_ids: [given.id] });
    await given.setup.clock.advance(30_000);
    expect([await given.statusNow(), await given.isRestarting()]).toEqual(['ONLINE', true]);
    isOpen = true;
    await given.setup.passUntil(`/volumes/${volume}`, 'ATTACHED');
    await given.setup.passUntil(`/instances/${given.id}`, 'ONLINE');
    expect([given.restarts(), given.setup.count('stop')]).toEqual([1, 1]);
  });
});

describe('a restart is refused', () => {
  const refused = async (setup: Setup, id: string) => {
    const reply = await setup.post(`/x/instances/${id}/restart`);
    return [reply.status, codeOf(reply), await setup.read(`/x/instances/${id}/restart`)];
  };
  const nothing = { restarting: false };

  it('unless the instance is ONLINE', async () => {
    await using setup = await startPlainOrchestrator();
    setup.setPlan(({ method }) => (method === 'create' || method === 'stop' ? 'hang' : 'none'));
    const id = await setup.create();
    await setup.clock.advance(100);
    expect(await refused(setup, id)).toEqual([409, 'invalid_state', nothing]);
    setup.setPlan(({ method }) => (method === 'stop' || method === 'start' ? 'hang' : 'none'));
    setup.release();
    await setup.passUntil(`/instances/${id}`, 'ONLINE');
    await setup.post(`/instances/${id}/stop`);
    await setup.clock.advance(100);
    expect(await refused(setup, id)).toEqual([409, 'invalid_state', nothing]);
    setup.release();
    await setup.passUntil(`/instances/${id}`, 'STOPPED');
    expect(await refused(setup, id)).toEqual([409, 'invalid_state', nothing]);
    await setup.post(`/instances/${id}/start`);
    expect(await refused(setup, id)).toEqual([409, 'operation_in_progress', nothing]);
    setup.setPlan(() => 'none');
    setup.release();
    await setup.passUntil(`/instances/${id}`, 'ONLINE');
    expect(setup.count('restart')).toBe(0);
  });

  it('while it is stopped and started for a volume', async () => {
    await using given = await startOnline({ manifest: { attachVolume: 'cold', resizeVolume: 'detached' } });
    const { setup, id } = given;
    const volume = await setup.createVolume();
    await setup.passUntil(`/volumes/${volume}`, 'AVAILABLE');
    setup.setPlan(({ method }) => (method === 'stop' ? 'hang' : 'none'));
    await setup.post(`/volumes/${volume}/attach`, { instance_ids: [id] });
    await setup.passUntil(`/instances/${id}`, 'STOPPING');
    expect(await refused(setup, id)).toEqual([409, 'operation_in_progress', nothing]);
  });

  it('where the platform or the offer cannot, which the offer says', async () => {
    for (const options of [
      { manifest: { restart: false } },
      { changeOffer: (offer) => ({ ...offer, restartable: false }) },
    ] satisfies Options[]) {
      await using given = await startOnline(options);
      expect(await refused(given.setup, given.id)).toEqual([409, 'restart_unsupported', nothing]);
      expect(await given.statusNow()).toBe('ONLINE');
      const { configurations } = (await given.setup.read('/configurations')) as {
        configurations: { extras: { berth: object } }[];
      };
      for (const { extras } of configurations) expect(extras.berth).toMatchObject({ restart: false });
    }
  });

  it('of an unknown instance, or of one of another account, with 404', async () => {
    await using given = await startOnline();
    const key = await given.setup.orchestrator.addAccount('another');
    for (const method of ['GET', 'POST']) {
      const path = `/x/instances/${given.id}/restart`;
      expect((await given.setup.orchestrator.request(method, path, { key })).status).toBe(404);
      expect((await given.setup.orchestrator.request(method, path, { key: null })).status).toBe(401);
    }
    expect((await given.setup.post('/x/instances/inst-none/restart')).status).toBe(404);
    expect(given.restarts()).toBe(0);
  });
});
