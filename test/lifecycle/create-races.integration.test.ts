import { describe, expect, it } from 'vitest';
import type { ObservedMachine, PlatformDriver, Step } from '../../src/orchestrator/model/platform-driver.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { until } from '../support/time/until.ts';
import { create, failed, listed, online, post, startWithFaults, statusOf } from './step-races.fixture.ts';

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
    const { clock } = orchestrator;
    const from = clock.now();
    await until('the window is over', () => clock.now() > from + 300);
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
        reconcile: { leaseMs: 200 },
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
