import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '../../src/operator-kit/model.ts';
import { destroyInstance, retryInstance } from '../../src/orchestrator/operate/actions/instances.ts';
import { readInstance } from '../../src/orchestrator/operate/views/instance.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const actor: Actor = { name: 'ann', source: 'cli', address: null };

let berth: Awaited<ReturnType<typeof startPlainOrchestrator>>;
let id: string;
let ref: string;
/** What the platform hides as if it were gone. */
let hidden: string | undefined;

beforeEach(async () => {
  hidden = undefined;
  berth = await startPlainOrchestrator(() => 'none', {
    reconcile: { watchIntervalMs: 30_000, holdLostClaimsMs: 600_000 },
    retention: { lost_disks_hours: 1 },
  });
  const { driver } = berth.platform;
  const { get, list } = driver;
  driver.get = async (asked) => (asked === hidden ? { answer: 'gone' } : get.call(driver, asked));
  driver.list = async () => {
    const listing = await list.call(driver);
    if (listing.answer !== 'listed') return listing;
    return { ...listing, items: listing.items.filter((machine) => machine.ref !== hidden) };
  };
  // Others, so that one that is missing is no suspicion.
  for (let n = 0; n < 2; n++) await berth.passUntil(`/instances/${await berth.create()}`, 'ONLINE');
  id = await berth.create();
  ref = `berth-${id}`;
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  await berth.clock.advance(MINUTE_MS);
});
afterEach(() => berth[Symbol.asyncDispose]());

const power = () => berth.platform.machines.get(ref)?.power;
const isUnitHeld = () => berth.orchestrator.store.read.claims.isHeldBy(id);
const remove = () => berth.orchestrator.request('DELETE', `/instances/${id}`);
const alarms = async () =>
  (await berth.orchestrator.store.read.alarms.list())
    .filter(({ subject }) => subject === ref || subject === id)
    .map(({ kind }) => kind);

describe('an instance whose machine failed', () => {
  beforeEach(async () => {
    berth.platform.change(ref, { power: 'failed' });
    await berth.passUntil(`/instances/${id}`, 'ERROR');
  });

  it('keeps its machine and its unit until its DELETE, and is no orphan', async () => {
    await berth.clock.advance(2 * HOUR_MS);
    expect([power(), await isUnitHeld(), await alarms()]).toEqual(['failed', true, []]);
  });

  it('has its disks for retention.lost_disks_hours after the DELETE that follows such an end', async () => {
    await remove();
    await berth.passUntil(`/instances/${id}`, 'GONE');
    expect([power(), await isUnitHeld()]).toEqual(['failed', false]);
    await berth.clock.advance(50 * MINUTE_MS);
    expect(berth.platform.machines.has(ref)).toBe(true);
    await berth.clock.advance(20 * MINUTE_MS);
    expect(berth.platform.machines.has(ref)).toBe(false);
  });
});

describe('the disks that a DELETE keeps', () => {
  const order = { dry_run: false, reason: 'the disk is full' };
  const rm = () =>
    destroyInstance.perform({ store: berth.orchestrator.store, clock: berth.clock }, actor, {
      ...order,
      instanceId: id,
    });
  beforeEach(async () => {
    berth.platform.change(ref, { power: 'failed' });
    await berth.passUntil(`/instances/${id}`, 'ERROR');
    await remove();
  });

  it('are removed at once by an operator [operator-rm-kept]', async () => {
    await berth.passUntil(`/instances/${id}`, 'GONE');
    const { store } = berth.orchestrator;
    await expect(
      retryInstance.perform({ store, clock: berth.clock }, actor, { instanceId: id, dry_run: false }),
    ).rejects.toThrow('its disks are kept for retention.lost_disks_hours');
    const read = async () => (await readInstance(store.read, id, berth.clock.now()))?.destroy_order;
    expect(await read()).toMatch(
      /^a DELETE of account \S+, 20.*; its disks are kept for retention\.lost_disks_hours$/,
    );
    expect((await rm()).effect).toContain('kept since its DELETE');
    await berth.clock.advance(MINUTE_MS);
    expect(berth.platform.machines.has(ref)).toBe(false);
    expect(await store.read.instances.byId(id)).toMatchObject({
      status: 'DESTROYED',
      destroyOrder: { reason: 'operator', by: 'ann' },
    });
    expect(await read()).toMatch(/^operator ann, 20\S+$/);
    await expect(rm()).rejects.toThrow('nothing is left of it');
  });

  it('are removed at once by an operator before it is DESTROYED, too', async () => {
    await rm();
    await berth.passUntil(`/instances/${id}`, 'GONE');
    expect(berth.platform.machines.has(ref)).toBe(false);
  });
});

describe('an instance whose machine is proved gone', () => {
  beforeEach(async () => {
    hidden = ref;
    await berth.passUntil(`/instances/${id}`, 'ERROR');
  });

  it('keeps its unit for a time, and gives it back then', async () => {
    expect(await isUnitHeld()).toBe(true);
    await berth.clock.advance(8 * MINUTE_MS);
    expect(await isUnitHeld()).toBe(true);
    await berth.clock.advance(4 * MINUTE_MS);
    expect(await isUnitHeld()).toBe(false);
  });

  it('is an alarm when its machine turns up again, which is never touched and keeps the unit', async () => {
    hidden = undefined;
    await berth.clock.advance(2 * HOUR_MS);
    expect([power(), await isUnitHeld()]).toEqual(['running', true]);
    expect((await alarms()).sort()).toEqual(['machine_gone', 'orphan_machine']);
  });

  it('is off after its DELETE where its machine turned up again, and its disks go later', async () => {
    hidden = undefined;
    await berth.clock.advance(10 * MINUTE_MS);
    await remove();
    await berth.passUntil(`/instances/${id}`, 'GONE');
    expect([power(), await isUnitHeld()]).toEqual(['stopped', false]);
    await berth.clock.advance(70 * MINUTE_MS);
    expect(berth.platform.machines.has(ref)).toBe(false);
    expect(await alarms()).toEqual([]);
    const details = (await berth.orchestrator.store.read.history.of(id)).map(({ detail }) => detail);
    expect(details).toContainEqual(expect.stringMatching(/^it is off, and its disks are kept until 20/));
    expect(details).toContain('retention.lost_disks_hours are over: its disks are removed');
  });

  it('is 404 at once after its DELETE, and what turns up later is switched off, then removed', async () => {
    await remove();
    await berth.passUntil(`/instances/${id}`, 'GONE');
    hidden = undefined;
    await berth.clock.advance(10 * MINUTE_MS);
    expect(power()).toBe('stopped');
    await berth.clock.advance(70 * MINUTE_MS);
    expect(berth.platform.machines.has(ref)).toBe(false);
  });
});

it('the DELETE of a live instance removes its disks at once, and says who asked for it', async () => {
  await remove();
  await berth.passUntil(`/instances/${id}`, 'GONE');
  expect(berth.platform.machines.has(ref)).toBe(false);
  const { store, account } = berth.orchestrator;
  expect(await store.read.instances.byId(id)).toMatchObject({
    destroyOrder: { reason: 'tenant', by: account.id, at: expect.any(Number) },
  });
});
