import { describe, expect, it } from 'vitest';
import { silentLog } from '../support/doubles/log.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';
import { BriskClock } from '../support/time/virtual-clock.ts';
import { create, failed, listed, online, post, startWithFaults } from './step-races.fixture.ts';

describe('a step that breaks off', () => {
  it('hands its cookie to no other step', async () => {
    const cookies: (string | null)[] = [];
    let breaksOff = false;
    const stopMay = Promise.withResolvers<void>();
    await using orchestrator = await startTestOrchestrator({
      platform: { stopMs: [2_000, 2_000] },
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
      const work = await orchestrator.store.read.work.of(id);
      return work?.cookie === 'of-the-stop' && work.attempt === 1;
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
      reconcile: { watchIntervalMs: 60_000 },
      retention: { lost_disks_hours: 0 },
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
      platform: { stopMs: [300, 300] },
      reconcile: { emptyForMs: 2_000 },
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

  it('of a machine that is gone is OFFLINE, and holds its capacity no longer than such a unit is kept', async () => {
    await using orchestrator = await startTestOrchestrator({
      reconcile: { watchIntervalMs: 60_000, emptyForMs: 2_000, holdLostClaimsMs: 0 },
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
    const clock = new BriskClock();
    let isClosed = false;
    const late: string[] = [];
    let claimMay: Promise<void> | undefined;
    let isClaiming = false;
    const claimed = Promise.withResolvers<void>();
    {
      await using orchestrator = await startTestOrchestrator({
        clock,
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
          // What the closed store refuses is a warning.
          warn: (_fields, message) => {
            if (isClosed) late.push(message);
          },
        },
      });
      claimMay = claimed.promise;
      await create(orchestrator);
      await until('work is being claimed', () => isClaiming);
      clock.setTimer(300, claimed.resolve);
    }
    await claimed.promise;
    await new Promise<void>((resolve) => clock.setTimer(1_000, resolve));
    expect(late).toEqual([]);
  });
});
