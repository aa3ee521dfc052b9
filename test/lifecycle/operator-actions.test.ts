import { describe, expect, it } from 'vitest';
import { destroyInstance, retryInstance } from '../../src/orchestrator/operate/actions/instances.ts';
import { acceptLosses } from '../../src/orchestrator/operate/actions/losses.ts';
import { LISTED_MS, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { actor, audited } from './operator-actions.fixture.ts';

describe('a retry', () => {
  it('has the open step tried at once; a dry run changes nothing [operator-retry]', async () => {
    let isBroken = true;
    await using berth = await startPlainOrchestrator(({ method }) =>
      method === 'create' && isBroken
        ? { kind: 'misclaim', code: 'transient', sideEffect: 'none', isDone: false }
        : 'none',
    );
    const deps = { store: berth.orchestrator.store, clock: berth.clock };
    const id = await berth.create();
    await berth.clock.advance(60_000);
    const waitMs = async () => ((await deps.store.read.work.of(id))?.notBefore ?? 0) - berth.clock.now();
    while ((await waitMs()) < 500) await berth.clock.advance(100);
    isBroken = false;
    const tries = berth.count('create');
    const dry = await retryInstance.perform(deps, actor, { instanceId: id, dry_run: true });
    expect(dry).toMatchObject({ status: 'PROVISIONING', step: { kind: 'create' }, done: false });
    expect(Date.parse(dry.step?.next_try_at ?? '')).toBe(berth.clock.now() + (await waitMs()));
    await berth.clock.advance(200);
    expect([berth.count('create'), await audited(berth)]).toEqual([tries, []]);
    expect(await retryInstance.perform(deps, actor, { instanceId: id, dry_run: false })).toMatchObject({
      done: true,
    });
    await berth.clock.advance(200);
    expect(berth.count('create')).toBe(tries + 1);
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    expect(await audited(berth)).toEqual(['instance.retry done']);
  });

  it('never cuts the wait short after which an earlier create can no longer show [operator-retry-wait]', async () => {
    await using berth = await startPlainOrchestrator(
      ({ method }, nth) => (method === 'create' && nth === 1 ? 'hang' : 'none'),
      { manifest: { createVisibleWithinMs: 120_000 } },
    );
    const deps = { store: berth.orchestrator.store, clock: berth.clock };
    const id = await berth.create();
    await berth.clock.advance(40_000);
    expect((await deps.store.read.work.of(id))?.waitedAttempt).not.toBeNull();
    await expect(retryInstance.perform(deps, actor, { instanceId: id, dry_run: false })).rejects.toThrow(
      'cannot be shortened',
    );
    await berth.clock.advance(1_000);
    expect(berth.count('create')).toBe(1);
    expect(await audited(berth)).toEqual(['instance.retry refused']);
  });

  it('of an instance without an open step has its machine read again, and what is gone is found', async () => {
    await using berth = await startPlainOrchestrator(() => 'none', {
      reconcile: { watchIntervalMs: 600_000 },
    });
    const deps = { store: berth.orchestrator.store, clock: berth.clock };
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    // Another one: a platform that shows nothing at all is not believed at once.
    await berth.passUntil(`/instances/${await berth.create()}`, 'ONLINE');
    await berth.clock.advance(5_000);
    berth.platform.lose(`berth-${id}`);
    await berth.clock.advance(5_000);
    expect((await berth.read(`/instances/${id}`))['status']).toBe('ONLINE');
    await retryInstance.perform(deps, actor, { instanceId: id, dry_run: false });
    await berth.passUntil(`/instances/${id}`, 'ERROR');
    await expect(
      retryInstance.perform(deps, actor, { instanceId: 'inst-none', dry_run: false }),
    ).rejects.toThrow('There is no instance inst-none');
  });
});

it('a destroy by an operator ends an instance only when its machine is proved gone [operator-destroy]', async () => {
  await using berth = await startPlainOrchestrator(({ method }) =>
    method === 'destroy' ? 'lie-done' : 'none',
  );
  const deps = { store: berth.orchestrator.store, clock: berth.clock };
  const id = await berth.create();
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  const order = { instanceId: id, reason: 'abuse' };
  const dry = await destroyInstance.perform(deps, actor, { ...order, dry_run: true });
  expect(dry).toMatchObject({ status: 'ONLINE', done: false });
  expect((await berth.read(`/instances/${id}`))['status']).toBe('ONLINE');
  for (let round = 0; round < 3; round++) {
    await destroyInstance.perform(deps, actor, { ...order, dry_run: false });
    await berth.clock.advance(LISTED_MS);
    expect((await berth.read(`/instances/${id}`))['status']).toBe('DESTROYING');
  }
  expect(berth.platform.machines.size).toBe(1);
  berth.setPlan(() => 'none');
  await destroyInstance.perform(deps, actor, { ...order, dry_run: false });
  await berth.passUntil(`/instances/${id}`, 'GONE');
  expect(berth.platform.machines.size).toBe(0);
  await expect(destroyInstance.perform(deps, actor, { ...order, dry_run: false })).rejects.toThrow(
    'nothing is left',
  );
  expect(new Set(await audited(berth))).toEqual(
    new Set(['instance.destroy done', 'instance.destroy refused']),
  );
});

describe('accepted losses', () => {
  it('end the missing instances of a platform whose listing is not trusted [operator-thaw]', async () => {
    await using berth = await startPlainOrchestrator();
    const deps = {
      store: berth.orchestrator.store,
      clock: berth.clock,
      platforms: new Map([['default', {}]]),
    };
    const ids = [await berth.create(), await berth.create()];
    for (const id of ids) await berth.passUntil(`/instances/${id}`, 'ONLINE');
    for (const id of ids) berth.platform.lose(`berth-${id}`);
    await berth.clock.advance(60_000);
    expect((await berth.read(`/instances/${ids[0]}`))['status']).toBe('ONLINE');
    const order = { platform: 'default', for_s: 60 };
    const { accepted_until: until } = await acceptLosses.perform(deps, actor, order);
    expect(Date.parse(until)).toBe(berth.clock.now() + 60_000);
    for (const id of ids) await berth.passUntil(`/instances/${id}`, 'ERROR');
    expect(await audited(berth)).toEqual(['losses.accept done']);
  });

  it('are refused while the platform does not answer: nothing is proved about its machines', async () => {
    await using berth = await startPlainOrchestrator();
    const deps = {
      store: berth.orchestrator.store,
      clock: berth.clock,
      platforms: new Map([['default', {}]]),
    };
    berth.setPlan(({ method }) => (method === 'list' ? 'unknown' : 'none'));
    await berth.clock.advance(30_000);
    await expect(acceptLosses.perform(deps, actor, { for_s: 60 })).rejects.toThrow('does not answer');
    expect(await deps.store.read.marks.get('losses_accepted_until')).toBeNull();
    expect(await audited(berth)).toEqual(['losses.accept refused']);
  });
});
