import { describe, expect, it } from 'vitest';
import type { Actor } from '../../src/operator-kit/model.ts';
import type { PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { releaseInstance, retryInstance } from '../../src/orchestrator/operate/actions/instances.ts';
import { readCapacity } from '../../src/orchestrator/operate/views/capacity.ts';
import { readInstance } from '../../src/orchestrator/operate/views/instance.ts';
import { type Plan, startPlainOrchestrator } from '../support/plain-orchestrator.ts';

const actor: Actor = { name: 'ann', source: 'cli', address: null };
const MINUTE = 60_000;
const neverBoots: Plan = ({ method }) =>
  method === 'create'
    ? { kind: 'misclaim', code: 'boot_failed', sideEffect: 'certain', isDone: true }
    : 'none';

async function startHolding(
  holdMinutes: number,
  plan = neverBoots,
  wrap = (driver: PlatformDriver): PlatformDriver => driver,
) {
  const asked = { console: 0 };
  const berth = await startPlainOrchestrator(plan, {
    retention: { failed_machines_minutes: holdMinutes },
    // Minutes pass, and each listing costs.
    reconcile: { watchIntervalMs: 10_000 },
    wrapDriver: (driver) => ({
      ...wrap(driver),
      consoleTail: async () => {
        asked.console++;
        return "cloud-init[612]: Cloud-init v. 24.4 running 'init' at now.\nkernel panic\n";
      },
    }),
  });
  const deps = { store: berth.orchestrator.store, clock: berth.clock };
  const id = await berth.create();
  await berth.passUntil(`/instances/${id}`, 'ERROR');
  await berth.clock.advance(5_000);
  return { berth, deps, id, asked, [Symbol.asyncDispose]: () => berth[Symbol.asyncDispose]() };
}

describe('the machine of an instance that failed', () => {
  it('is kept with its unit for as long as is configured, and then removed [hold-ends]', async () => {
    await using held = await startHolding(2);
    const { berth, deps, id } = held;
    const shown = await readInstance(deps.store.read, id, berth.clock.now());
    expect(shown).toMatchObject({
      work: 'hold',
      kept_until: expect.any(String),
      events: expect.arrayContaining([
        expect.objectContaining({ console: expect.stringContaining('kernel panic') }),
      ]),
    });
    expect([berth.platform.machines.size, await deps.store.read.claims.isHeldBy(id)]).toEqual([1, true]);
    await berth.clock.advance(1.5 * MINUTE);
    expect([berth.platform.machines.size, held.asked.console]).toEqual([1, 1]);
    await berth.clock.advance(MINUTE);
    expect([berth.platform.machines.size, await deps.store.read.claims.isHeldBy(id)]).toEqual([0, false]);
    expect((await readInstance(deps.store.read, id, berth.clock.now()))?.kept_until).toBeNull();
  });

  it('is told by the capacity as taken by one that failed [hold-capacity]', async () => {
    await using held = await startHolding(2);
    const { deps, berth } = held;
    const { catalog } = berth.orchestrator;
    const supply = {
      isOpen: () => true,
      unclaimedUnits: () => 0,
      platformUnits: () => 1,
      obstacles: () => [],
      isCountPartial: () => false,
      areStorageClaimsComplete: () => true,
      unclaimedStorageGb: () => 0,
    };
    const { placements } = await readCapacity(deps.store.read, { catalog, supply, now: berth.clock.now() });
    const own = placements.find(({ claimed }) => claimed === 1);
    expect(own).toMatchObject({
      failed: 1,
      available: 0,
      unavailable: [{ text: expect.stringContaining('that failed') }],
    });
  });

  it('rests between two readings of its console, however long it is kept [hold-rests]', async () => {
    await using held = await startHolding(1_440);
    await held.berth.clock.advance(5 * MINUTE);
    expect([held.berth.platform.machines.size, held.asked.console]).toEqual([1, 1]);
  });

  it('is kept where the platform shows it only some time after it was made [hold-hidden]', async () => {
    let isHidden = true;
    await using held = await startHolding(60, neverBoots, (driver) => ({
      ...driver,
      manifest: { ...driver.manifest, createVisibleWithinMs: MINUTE },
      get: async (ref) => (isHidden ? { answer: 'gone' } : driver.get(ref)),
      list: async () => (isHidden ? { answer: 'listed', items: [] } : driver.list()),
    }));
    isHidden = false;
    await held.berth.clock.advance(5 * MINUTE);
    expect([held.berth.platform.machines.size, held.asked.console]).toEqual([1, 1]);
  });

  it('is removed at once by the DELETE of its tenant [hold-delete]', async () => {
    await using held = await startHolding(60);
    await held.berth.orchestrator.request('DELETE', `/instances/${held.id}`);
    await held.berth.passUntil(`/instances/${held.id}`, 'GONE');
    expect(held.berth.platform.machines.size).toBe(0);
  });

  it('is removed when an operator releases it, as the audit log says [hold-release]', async () => {
    await using held = await startHolding(60);
    const { berth, deps, id } = held;
    expect(await releaseInstance.perform(deps, actor, { instanceId: id, dry_run: true })).toMatchObject({
      done: false,
    });
    await berth.clock.advance(MINUTE);
    expect(berth.platform.machines.size).toBe(1);
    await releaseInstance.perform(deps, actor, { instanceId: id, dry_run: false });
    await berth.clock.advance(5_000);
    expect(berth.platform.machines.size).toBe(0);
    await expect(releaseInstance.perform(deps, actor, { instanceId: id, dry_run: false })).rejects.toThrow(
      'nothing to release',
    );
    const entries = await deps.store.read.audit.page({ limit: 9 });
    expect(entries.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
      'instance.release refused',
      'instance.release done',
    ]);
  });

  it('has its console read again where an operator tries its step, and is kept as long as before [hold-retry]', async () => {
    await using held = await startHolding(2);
    const { berth, deps, id } = held;
    await retryInstance.perform(deps, actor, { instanceId: id, dry_run: false });
    await berth.clock.advance(1_000);
    expect([held.asked.console, berth.platform.machines.size]).toEqual([2, 1]);
    await berth.clock.advance(2 * MINUTE);
    expect(berth.platform.machines.size).toBe(0);
  });

  it('is kept over an outage by as much, and not removed while the platform cannot be believed [hold-outage]', async () => {
    await using held = await startHolding(2);
    const { berth } = held;
    berth.setPlan(() => 'fail-before');
    await berth.clock.advance(3 * MINUTE);
    berth.setPlan(() => 'none');
    await berth.clock.advance(MINUTE);
    expect(berth.platform.machines.size).toBe(1);
    await berth.clock.advance(2 * MINUTE);
    expect(berth.platform.machines.size).toBe(0);
  });
});

it('an instance whose create made nothing holds no unit: there is no machine to keep [hold-nothing]', async () => {
  await using held = await startHolding(60, ({ method }) =>
    method === 'create' ? { kind: 'misclaim', code: 'capacity', sideEffect: 'none', isDone: false } : 'none',
  );
  await held.berth.clock.advance(5_000);
  expect(await held.deps.store.read.claims.isHeldBy(held.id)).toBe(false);
  expect(held.asked.console).toBeLessThanOrEqual(1);
});
