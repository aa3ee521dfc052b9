import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { transition } from '../deployments/transition.ts';
import { adopt } from './launch.ts';
import {
  contextOf,
  HOUR_MS,
  MINUTE_MS,
  openTended,
  read,
  running,
  statuses,
  type Tended,
  tellings,
} from './sync.fixture.ts';

let tended: Tended;
beforeEach(async () => {
  tended = await openTended();
});
afterEach(() => tended.close());

async function terminate(id: string): Promise<void> {
  await tended.store.transact(async (tx) => {
    const record = await tx.deployments.byId(id);
    if (record !== null)
      await transition(tended.deps, tx, record, { to: 'terminated', at: tended.clock.now() });
  });
  tended.tending.wake('provider-x');
}

const request = { configuration_id: 'gpu-1', region: 'eu-one', ssh_keys: ['ssh-ed25519 AAAA'] };
const ours = (number: number) => `bm-00c0ffee-${String(number).padStart(32, '0')}`;

describe('a deployment that was terminated', () => {
  it('is deleted at its provider at once, and costs nothing from then on', async () => {
    const { id } = await running(tended);
    const at = tended.clock.now();
    await terminate(id);
    await tended.clock.advance(1);
    expect(statuses(tended.plain)).toEqual(['DESTROYING']);
    await tended.clock.advance(MINUTE_MS);
    expect(tended.plain.instances).toEqual([]);
    expect(await read(tended, id)).toMatchObject({ status: 'terminated', stoppedAt: at, cleanup: 'done' });
    const [segment, ...others] = await tended.store.read.ledger.segmentsOf('deployment', id);
    expect([segment?.endedAt, others]).toEqual([at, []]);
    const deletes = tended.plain.faults.countOf('deleteInstance');
    await tended.clock.advance(10 * MINUTE_MS);
    expect(tended.plain.faults.countOf('deleteInstance')).toBe(deletes);
  });

  it('is deleted for as long as it takes, with an alarm and not too often', async () => {
    const { id } = await running(tended);
    tended.plain.faults.plan = (method) => (method === 'deleteInstance' ? 'lose' : 'none');
    await terminate(id);
    await tended.clock.advance(2.5 * HOUR_MS);
    expect((await read(tended, id)).cleanup).toBe('wanted');
    const alarms = tended.told.filter(({ message }) => message.includes('not proved to be gone'));
    expect(alarms).toMatchObject([
      { level: 'error', fields: { deployment: id, reason: 'timeout: deleteInstance: the connection broke' } },
      { level: 'error', fields: { deployment: id } },
    ]);
    expect(tended.plain.faults.countOf('deleteInstance')).toBeLessThan(60);
    tended.plain.faults.plan = () => 'none';
    await tended.clock.advance(15 * MINUTE_MS);
    expect([(await read(tended, id)).cleanup, statuses(tended.plain)]).toEqual(['done', []]);
  });

  it('is not called deleted by a process that another one has replaced meanwhile [cleanup-fenced]', async () => {
    const { id } = await running(tended);
    // While the answer is on its way another process gets the provider, and this one does not know it.
    const lose = async () => {
      const runOutAt = tended.clock.now() + MINUTE_MS;
      await tended.store.transact((tx) =>
        tx.leases.claim('provider:provider-x', 'another', runOutAt, 9 * MINUTE_MS),
      );
      return null;
    };
    tended.plain.faults.plan = (method, nth) =>
      method === 'deleteInstance' && nth === 1 ? { answer: lose } : 'none';
    await terminate(id);
    await tended.clock.advance(5 * MINUTE_MS);
    expect(tended.plain.faults.countOf('deleteInstance')).toBe(1);
    expect(await read(tended, id)).toMatchObject({ status: 'terminated', cleanup: 'wanted' });
    expect(tellings(tended.told, 'warn', 'lease of the provider is lost')).toBe(1);
    await tended.clock.advance(6 * MINUTE_MS);
    expect((await read(tended, id)).cleanup).toBe('done');
  });

  it('is not taken for gone because its destruction was accepted', async () => {
    const { id } = await running(tended);
    tended.plain.options.deleteMs = MINUTE_MS;
    await terminate(id);
    await tended.clock.advance(50_000);
    expect([(await read(tended, id)).cleanup, statuses(tended.plain)]).toEqual(['wanted', ['DESTROYING']]);
    await tended.clock.advance(2 * MINUTE_MS);
    expect((await read(tended, id)).cleanup).toBe('done');
  });

  it('and of which an instance turns up after all is cleaned up again', async () => {
    const { id } = await running(tended);
    await terminate(id);
    await tended.clock.advance(MINUTE_MS);
    const late = tended.plain.create({ ...request, name: ours(1) });
    const record = await read(tended, id);
    await tended.store.transact((tx) => tx.deployments.update({ ...record, providerInstanceId: null }));
    await adopt(contextOf(tended), id, late);
    expect(await read(tended, id)).toMatchObject({ status: 'terminated', cleanup: 'wanted' });
    await tended.clock.advance(MINUTE_MS);
    expect([(await read(tended, id)).cleanup, statuses(tended.plain)]).toEqual(['done', []]);
  });

  it('is not taken for gone because of an answer that cannot be used', async () => {
    const { id } = await running(tended);
    tended.plain.faults.plan = (method, nth) => (method === 'deleteInstance' && nth < 4 ? 'hang' : 'none');
    await terminate(id);
    await tended.clock.advance(20_000);
    expect([(await read(tended, id)).cleanup, statuses(tended.plain)]).toEqual(['wanted', ['ONLINE']]);
    await tended.clock.advance(5 * MINUTE_MS);
    expect([(await read(tended, id)).cleanup, statuses(tended.plain)]).toEqual(['done', []]);
  });
});

describe('the sweep', () => {
  it('deletes what a deployment that is over left, once two lists have it', async () => {
    const { id } = await running(tended);
    await terminate(id);
    await tended.clock.advance(MINUTE_MS);
    tended.plain.create({ ...request, name: ours(1) });
    const sweeps = () => tended.plain.faults.countOf('listInstances');
    const before = sweeps();
    while (sweeps() === before) await tended.clock.advance(1_000);
    await tended.clock.advance(10_000);
    expect(statuses(tended.plain)).toEqual(['ONLINE']);
    while (sweeps() === before + 1) await tended.clock.advance(1_000);
    await tended.clock.advance(10_000);
    expect(statuses(tended.plain)).toEqual([]);
  });

  it('deletes what a live deployment has beside its own', async () => {
    const { id, instanceId } = await running(tended);
    tended.plain.create({ ...request, name: ours(1) });
    await tended.clock.advance(10 * MINUTE_MS);
    expect(tended.plain.instances.map((it) => it.id)).toEqual([instanceId]);
    expect((await read(tended, id)).status).toBe('running');
  });

  it('tells once of what no deployment knows, and leaves it and what is not ours', async () => {
    await running(tended);
    tended.plain.create({ ...request, name: ours(77) });
    tended.plain.create({ ...request, name: `bm-deadbeef-${'0'.repeat(32)}` });
    tended.plain.create({ ...request, name: 'somebody' });
    tended.plain.create(request);
    await tended.clock.advance(10 * MINUTE_MS);
    expect(statuses(tended.plain)).toEqual(Array.from({ length: 5 }, () => 'ONLINE'));
    expect(tellings(tended.told, 'warn', 'has our name and no deployment')).toBe(1);
  });
});
