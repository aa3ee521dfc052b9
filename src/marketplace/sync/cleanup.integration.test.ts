import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { transition } from '../deployments/transition.ts';
import { cleanUpLost } from '../operate/actions.ts';
import { adopt } from './launch.ts';
import {
  countLines,
  HOUR_MS,
  MINUTE_MS,
  openProviderWorkers,
  read,
  running,
  type SyncSetup,
  statuses,
} from './sync.fixture.ts';
import { contextOf } from './worker.fixture.ts';

const known = () => ({ has: () => true });

let setup: SyncSetup;
beforeEach(async () => {
  setup = await openProviderWorkers();
});
afterEach(() => setup.close());

async function terminate(id: string): Promise<void> {
  await setup.store.transact(async (tx) => {
    const record = await tx.deployments.byId(id);
    if (record !== null)
      await transition(setup.deps, tx, record, { to: 'terminated', at: setup.clock.now() });
  });
}

const request = { configuration_id: 'gpu-1', region: 'eu-one', ssh_keys: ['ssh-ed25519 AAAA'] };
const ours = (number: number) => `bm-00c0ffee-${String(number).padStart(32, '0')}`;

describe('a deployment that was terminated', () => {
  it('is deleted at its provider at once, and costs nothing from then on', async () => {
    const { id } = await running(setup);
    const at = setup.clock.now();
    await terminate(id);
    await setup.clock.advance(1);
    expect(statuses(setup.plain)).toEqual(['DESTROYING']);
    await setup.clock.advance(MINUTE_MS);
    expect(setup.plain.instances).toEqual([]);
    expect(await read(setup, id)).toMatchObject({ status: 'terminated', stoppedAt: at, cleanup: 'done' });
    const [segment, ...others] = await setup.store.read.ledger.segmentsOf('deployment', id);
    expect([segment?.endedAt, others]).toEqual([at, []]);
    const deletes = setup.plain.faults.countOf('deleteInstance');
    await setup.clock.advance(10 * MINUTE_MS);
    expect(setup.plain.faults.countOf('deleteInstance')).toBe(deletes);
  });

  it('is retried without end, with an alarm and not too often', async () => {
    const { id } = await running(setup);
    setup.plain.faults.plan = (method) => (method === 'deleteInstance' ? 'lose' : 'none');
    await terminate(id);
    await setup.clock.advance(2.5 * HOUR_MS);
    expect((await read(setup, id)).cleanup).toBe('wanted');
    const alarms = setup.logged.filter(({ message }) => message.includes('may still exist and cost money'));
    expect(alarms).toMatchObject([
      { level: 'error', fields: { deployment: id, reason: 'timeout: deleteInstance: the connection broke' } },
      { level: 'error', fields: { deployment: id } },
    ]);
    expect(setup.plain.faults.countOf('deleteInstance')).toBeLessThan(60);
    setup.plain.faults.plan = () => 'none';
    await setup.clock.advance(15 * MINUTE_MS);
    expect([(await read(setup, id)).cleanup, statuses(setup.plain)]).toEqual(['done', []]);
  });

  it('is not recorded as deleted by a process that has lost its lease [cleanup-fenced]', async () => {
    const { id } = await running(setup);
    // While the answer is in transit, another process takes over the provider without this one noticing.
    const lose = async () => {
      const runOutAt = setup.clock.now() + MINUTE_MS;
      await setup.store.transact((tx) =>
        tx.leases.claim(['provider:provider-x'], 'another', runOutAt, 9 * MINUTE_MS),
      );
      return null;
    };
    setup.plain.faults.plan = (method, nth) =>
      method === 'deleteInstance' && nth === 1 ? { answer: lose } : 'none';
    await terminate(id);
    await setup.clock.advance(5 * MINUTE_MS);
    expect(setup.plain.faults.countOf('deleteInstance')).toBe(1);
    expect(await read(setup, id)).toMatchObject({ status: 'terminated', cleanup: 'wanted' });
    expect(countLines(setup.logged, 'warn', 'lost the lease on the provider')).toBe(1);
    await setup.clock.advance(6 * MINUTE_MS);
    expect((await read(setup, id)).cleanup).toBe('done');
  });

  it('is not considered gone because its deletion was accepted', async () => {
    const { id } = await running(setup);
    setup.plain.options.deleteMs = MINUTE_MS;
    await terminate(id);
    await setup.clock.advance(50_000);
    expect([(await read(setup, id)).cleanup, statuses(setup.plain)]).toEqual(['wanted', ['DESTROYING']]);
    await setup.clock.advance(2 * MINUTE_MS);
    expect((await read(setup, id)).cleanup).toBe('done');
  });

  it('is cleaned up again if an instance appears later', async () => {
    const { id } = await running(setup);
    await terminate(id);
    await setup.clock.advance(MINUTE_MS);
    const late = setup.plain.create({ ...request, name: ours(1) });
    const record = await read(setup, id);
    await setup.store.transact((tx) => tx.deployments.update({ ...record, providerInstanceId: null }));
    await adopt(contextOf(setup.deps, setup.provider), id, late);
    expect(await read(setup, id)).toMatchObject({ status: 'terminated', cleanup: 'wanted' });
    await setup.clock.advance(MINUTE_MS);
    expect([(await read(setup, id)).cleanup, statuses(setup.plain)]).toEqual(['done', []]);
  });

  it('is not considered gone because of an unusable answer', async () => {
    const { id } = await running(setup);
    setup.plain.faults.plan = (method, nth) => (method === 'deleteInstance' && nth < 4 ? 'hang' : 'none');
    await terminate(id);
    await setup.clock.advance(20_000);
    expect([(await read(setup, id)).cleanup, statuses(setup.plain)]).toEqual(['wanted', ['ONLINE']]);
    await setup.clock.advance(5 * MINUTE_MS);
    expect([(await read(setup, id)).cleanup, statuses(setup.plain)]).toEqual(['done', []]);
  });
});

describe('a deployment that its provider lost', () => {
  const mara = { name: 'mara', source: 'cli', address: null } as const;
  const deletes = () => setup.plain.faults.countOf('deleteInstance');

  /** The provider answers 404 for every instance until the test changes that. */
  async function lose(): Promise<{ id: string; instanceId: string }> {
    const ran = await running(setup);
    setup.plain.faults.plan = (method) => {
      if (method === 'listInstances') return { instead: [] };
      return method === 'getInstance' ? { error: notFound() } : 'none';
    };
    await setup.clock.advance(2 * MINUTE_MS);
    expect(await read(setup, ran.id)).toMatchObject({ status: 'terminated-provider', cleanup: 'none' });
    return ran;
  }

  it('keeps its reappeared instance, with one alarm, until an operator orders the clean-up [lost-kept]', async () => {
    const { id, instanceId } = await lose();
    setup.plain.faults.plan = () => 'none';
    const sweeps = setup.plain.faults.countOf('listInstances');
    await setup.clock.advance(25 * MINUTE_MS);
    expect(setup.plain.faults.countOf('listInstances') - sweeps).toBeGreaterThanOrEqual(10);
    expect([statuses(setup.plain), deletes()]).toEqual([['ONLINE'], 0]);
    const alarms = setup.logged.filter(({ message }) => message.includes('losses clean-up'));
    expect(alarms).toMatchObject([{ level: 'error', fields: { deployment: id, instance: instanceId } }]);

    await cleanUpLost.perform({ ...setup.deps, providers: known }, mara, { deploymentId: id });
    await expect(
      cleanUpLost.perform({ ...setup.deps, providers: known }, mara, { deploymentId: id }),
    ).rejects.toThrow('is already being deleted');
    await setup.clock.advance(MINUTE_MS);
    expect([(await read(setup, id)).cleanup, statuses(setup.plain)]).toEqual(['done', []]);
    await expect(
      cleanUpLost.perform({ ...setup.deps, providers: known }, mara, { deploymentId: id }),
    ).rejects.toThrow('is already deleted');
    const before = deletes();
    await setup.clock.advance(25 * MINUTE_MS);
    expect(deletes()).toBe(before);
  });

  it('has its instance deleted by the sweep if it reappears only after the order', async () => {
    const { id } = await lose();
    const denied = setup.plain.faults.plan;
    setup.plain.faults.plan = (method, ...call) =>
      method === 'deleteInstance' ? { instead: null } : denied(method, ...call);
    await cleanUpLost.perform({ ...setup.deps, providers: known }, mara, { deploymentId: id });
    await setup.clock.advance(MINUTE_MS);
    expect([(await read(setup, id)).cleanup, statuses(setup.plain)]).toEqual(['done', ['ONLINE']]);
    setup.plain.faults.plan = () => 'none';
    await setup.clock.advance(15 * MINUTE_MS);
    expect(statuses(setup.plain)).toEqual([]);
  });
});

function notFound() {
  return new ProviderError('not_found', '404: not_found', { status: 404, code: 'not_found' });
}

describe('the sweep', () => {
  it('deletes an instance left by an ended deployment, once two lists show it', async () => {
    const { id } = await running(setup);
    await terminate(id);
    await setup.clock.advance(MINUTE_MS);
    setup.plain.create({ ...request, name: ours(1) });
    const sweeps = () => setup.plain.faults.countOf('listInstances');
    const before = sweeps();
    while (sweeps() === before) await setup.clock.advance(1_000);
    await setup.clock.advance(10_000);
    expect(statuses(setup.plain)).toHaveLength(1);
    while (sweeps() === before + 1) await setup.clock.advance(1_000);
    await setup.clock.advance(10_000);
    expect(statuses(setup.plain)).toEqual([]);
  });

  it('deletes an extra instance of a live deployment', async () => {
    const { id, instanceId } = await running(setup);
    setup.plain.create({ ...request, name: ours(1) });
    await setup.clock.advance(10 * MINUTE_MS);
    expect(setup.plain.instances.map((it) => it.id)).toEqual([instanceId]);
    expect((await read(setup, id)).status).toBe('running');
  });

  it('reports an instance without a deployment once, and does not delete it or foreign instances', async () => {
    await running(setup);
    setup.plain.create({ ...request, name: ours(77) });
    setup.plain.create({ ...request, name: `bm-deadbeef-${'0'.repeat(32)}` });
    setup.plain.create({ ...request, name: 'somebody' });
    setup.plain.create(request);
    await setup.clock.advance(10 * MINUTE_MS);
    expect(statuses(setup.plain)).toEqual(Array.from({ length: 5 }, () => 'ONLINE'));
    expect(countLines(setup.logged, 'warn', 'has a name of this marketplace but no deployment')).toBe(1);
  });
});
