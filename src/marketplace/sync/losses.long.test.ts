import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { transition } from '../deployments/transition.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { cleanUpLost } from '../operate/actions.ts';
import { acceptLosses, countLosses } from '../providers/loss-cap.ts';
import {
  accept,
  countLines,
  HOUR_MS,
  MINUTE_MS,
  openProviderWorkers,
  read,
  type SyncSetup,
} from './sync.fixture.ts';

const known = () => ({ has: () => true });

const MACHINES = 8;
/** 20 percent of eight would be only one. */
const CAP = 5;

let setup: SyncSetup;
let ids: string[];
beforeEach(async () => {
  setup = await openProviderWorkers({ bootMs: 1_000 });
  ids = [];
  for (let number = 1; number <= MACHINES; number++) ids.push(await accept(setup, { number }));
  setup.workers.start();
  await setup.clock.advance(2 * MINUTE_MS);
  expect(await countOf('running')).toBe(MACHINES);
});
afterEach(() => setup.close());

const records = () => Promise.all(ids.map((id) => read(setup, id)));
const countOf = async (status: DeploymentRecord['status']) =>
  (await records()).filter((record) => record.status === status).length;
const losses = () =>
  countLosses(setup.store.read, 'provider-x', setup.deps.options.maxLosses, setup.clock.now());
const alarms = () => countLines(setup.logged, 'error', 'losses accept provider-x');

/** The provider answers as for another account's key: every id is 404, and the list is empty. */
function denyAll(): void {
  const gone = setup.plain.get('i-1');
  setup.plain.faults.plan = (method) => {
    if (method === 'listInstances') return { instead: [] };
    if (method === 'getInstance') return { error: notFound() };
    // The client treats a 404 as a completed deletion.
    if (method === 'deleteInstance') return { instead: null };
    return 'none';
  };
  expect(gone.status).toBe('ONLINE');
}

function notFound() {
  return new ProviderError('not_found', '404: not_found', { status: 404, code: 'not_found' });
}

describe('a provider that answers 404 for everything', () => {
  it('ends no more than the cap, with an alarm', async () => {
    denyAll();
    await setup.clock.advance(10 * MINUTE_MS);
    expect([await countOf('terminated-provider'), await countOf('running')]).toEqual([CAP, MACHINES - CAP]);
    expect(await losses()).toMatchObject({ count: CAP, cap: CAP, held: MACHINES - CAP });
    expect(alarms()).toBe(1);
    await setup.clock.advance(HOUR_MS);
    // Time alone changes nothing.
    expect(await countOf('running')).toBe(MACHINES - CAP);
    expect(alarms()).toBe(2);
  });

  it('has held deployments billed only up to its last answer', async () => {
    const from = setup.clock.now();
    denyAll();
    await setup.clock.advance(15 * MINUTE_MS);
    for (const { status, observedAt, stoppedAt } of await records()) {
      expect(observedAt).toBeLessThanOrEqual(from);
      if (status !== 'running') expect(stoppedAt).toBeLessThanOrEqual(from);
    }
  });

  it('releases all holds once it lists its machines again, which ran all the time', async () => {
    denyAll();
    await setup.clock.advance(15 * MINUTE_MS);
    setup.plain.faults.plan = () => 'none';
    await setup.clock.advance(MINUTE_MS);
    expect(await losses()).toMatchObject({ held: 0 });
    const live = (await records()).filter(({ status }) => status === 'running');
    expect(live).toHaveLength(MACHINES - CAP);
    for (const { suspicion, observedAt } of live) {
      expect(suspicion).toBeNull();
      expect(observedAt).toBeGreaterThan(setup.clock.now() - MINUTE_MS);
    }
    // Wrongly ended machines cost money at the provider until an operator orders their deletion.
    await setup.clock.advance(10 * MINUTE_MS);
    expect(setup.plain.instances).toHaveLength(MACHINES);
    expect(countLines(setup.logged, 'error', 'losses clean-up')).toBe(CAP);
    const mara = { name: 'mara', source: 'cli', address: null } as const;
    for (const { id, status } of await records())
      if (status !== 'running')
        await cleanUpLost.perform({ ...setup.deps, providers: known }, mara, { deploymentId: id });
    await setup.clock.advance(MINUTE_MS);
    expect(setup.plain.instances.map(({ id }) => id)).toEqual(
      live.map(({ providerInstanceId }) => providerInstanceId),
    );
    setup.plain.vanish(live[0]?.providerInstanceId ?? '');
    await setup.clock.advance(2 * MINUTE_MS);
    expect(await countOf('terminated-provider')).toBe(CAP + 1);
  });

  it('ends all lost deployments, from its last answer on, once an operator accepts', async () => {
    const from = setup.clock.now();
    denyAll();
    await setup.clock.advance(15 * MINUTE_MS);
    await acceptLosses(setup.deps, 'provider-x', setup.clock.now() + HOUR_MS);
    await setup.clock.advance(MINUTE_MS);
    expect(await countOf('terminated-provider')).toBe(MACHINES);
    expect((await losses()).held).toBe(0);
    for (const { stoppedAt } of await records()) expect(stoppedAt).toBeLessThanOrEqual(from);
  });

  it('is not trusted about the end of a machine that its user has terminated in the meantime', async () => {
    denyAll();
    await setup.clock.advance(10 * MINUTE_MS);
    const held = (await records()).find(({ status }) => status === 'running');
    if (held === undefined) throw new Error('none is held');
    await setup.store.transact(async (tx) => {
      const record = await tx.deployments.byId(held.id);
      if (record !== null)
        await transition(setup.deps, tx, record, { to: 'terminated', at: setup.clock.now() });
    });
    await setup.clock.advance(30 * MINUTE_MS);
    expect(await read(setup, held.id)).toMatchObject({ status: 'terminated', cleanup: 'wanted' });
    await setup.clock.advance(HOUR_MS);
    const alarm = setup.logged.find(({ message }) => message.includes('may still exist and cost money'));
    // The alarm does not ask operators to look for a machine that the provider answers 404 for.
    expect(alarm?.fields).toMatchObject({
      deployment: held.id,
      reason: expect.stringMatching(/answers 404 for it .*`berth marketplace losses`/),
    });
    expect((await losses()).held).toBe(MACHINES - CAP - 1);
    setup.plain.faults.plan = () => 'none';
    // Two of its longest pauses: one until it deletes the machine, one until it reads that it is gone.
    await setup.clock.advance(13 * MINUTE_MS);
    expect((await read(setup, held.id)).cleanup).toBe('done');
    expect(setup.plain.instances.some(({ id }) => id === held.providerInstanceId)).toBe(false);
  });
});

it('small numbers of losses over time are not held', async () => {
  for (let number = 1; number <= 7; number++) {
    setup.plain.vanish(`i-${number}`);
    await setup.clock.advance(3 * MINUTE_MS);
  }
  expect(await countOf('terminated-provider')).toBe(7);
  expect(alarms()).toBe(0);
});

it('an end that the provider reports does not count as a loss', async () => {
  for (let number = 1; number <= 7; number++) setup.plain.set(`i-${number}`, { status: 'DESTROYED' });
  await setup.clock.advance(5 * MINUTE_MS);
  expect(await countOf('terminated-provider')).toBe(7);
  expect(await losses()).toMatchObject({ count: 0, held: 0 });
});
