import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { intent } from '../../../test/support/rows/marketplace-rows.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { Reader, Store } from '../model/store.ts';
import type { SyncContext } from './context.ts';
import { sendIntent } from './intents.ts';
import { openProviderWorkers, read, running, type SyncSetup, stopped } from './sync.fixture.ts';
import { syncDeployment } from './sync-deployment.ts';
import { contextOf } from './worker.fixture.ts';

let setup: SyncSetup;
let context: SyncContext;
let id: string;
let instanceId: string;
/** Counts the database accesses. */
let used: { reads: number; transactions: number };

beforeEach(async () => {
  setup = await openProviderWorkers();
  ({ id, instanceId } = await running(setup));
  await stopped(setup.clock, setup.workers);
  used = { reads: 0, transactions: 0 };
  context = contextOf({ ...setup.deps, store: counting(setup.store) }, setup.provider);
  await syncDeployment(context, id);
  used = { reads: 0, transactions: 0 };
});
afterEach(() => setup.close());

function counting(store: Store): Store {
  const deployments: Reader['deployments'] = {
    ...store.read.deployments,
    byId: (of) => {
      used.reads++;
      return store.read.deployments.byId(of);
    },
  };
  return {
    ...store,
    read: { ...store.read, deployments },
    transact: (body) => {
      used.transactions++;
      return store.transact(body);
    },
  };
}

async function pollAfter(ms: number): Promise<void> {
  await setup.clock.advance(ms);
  await syncDeployment(context, id);
}

async function change(changes: Partial<DeploymentRecord>): Promise<void> {
  const record = await read(setup, id);
  await setup.store.transact((tx) => tx.deployments.update({ ...record, ...changes }));
}

const confirmedAt = async () => (await read(setup, id)).observedAt;

describe('an answer equal to the last one', () => {
  it('costs no transaction and no read, and confirms the deployment up to the time of the request', async () => {
    for (let polls = 0; polls < 10; polls++) await pollAfter(20_000);
    expect(used).toEqual({ reads: 0, transactions: 0 });
    await context.confirmations.flush();
    expect(used).toEqual({ reads: 0, transactions: 1 });
    expect(await confirmedAt()).toBe(setup.clock.now());
  });

  it('is read in full every ten minutes at the latest, with the row', async () => {
    for (let polls = 0; polls < 30; polls++) await pollAfter(20_000);
    expect(used.reads).toBeGreaterThanOrEqual(1);
    expect(used.reads).toBeLessThanOrEqual(2);
  });

  it('does not confirm a changed row until the row is read again', async () => {
    const before = await confirmedAt();
    await change({ name: 'another' });
    await pollAfter(20_000);
    await context.confirmations.flush();
    expect(await confirmedAt()).toBe(before);
    await pollAfter(20_000);
    expect(used.reads).toBe(1);
    await context.confirmations.flush();
    expect(await confirmedAt()).toBe(setup.clock.now());
  });

  it('is not kept where the row changed during the poll', async () => {
    context.answers.rowChanged(id);
    const { pollInstance } = setup.plain.client;
    setup.plain.client.pollInstance = async (...args) => {
      setup.plain.client.pollInstance = pollInstance;
      const answer = await pollInstance(...args);
      await change({ name: 'another' });
      context.answers.rowChanged(id);
      return answer;
    };
    await pollAfter(20_000);
    await pollAfter(20_000);
    expect(used.reads).toBe(2);
  });

  it.each([
    ['a change in progress', { action: intent('restart', { since: 0 }) }],
    ['a suspicion', { suspicion: { status: 'OFFLINE', since: 0, polls: 1 } }],
  ] as const)('is not kept while there is %s', async (_, changes) => {
    const since = setup.clock.now();
    await change('action' in changes ? { action: { ...changes.action, since, sentAt: since } } : changes);
    context.answers.rowChanged(id);
    await pollAfter(1_000);
    await pollAfter(1_000);
    expect(used.reads).toBe(2);
  });

  it('is not kept after an attempt that was committed and not sent, because the lease had expired', async () => {
    const since = setup.clock.now();
    await change({ action: intent('pause', { since, until: since + 60_000, attempt: 0, sentAt: null }) });
    expect(await sendIntent({ ...context, isLeaseHeld: () => false }, id)).toBe(false);
    expect((await read(setup, id)).action).toMatchObject({ attempt: 1, sentAt: since });
    expect(setup.plain.faults.countOf('stopInstance')).toBe(0);
    used = { reads: 0, transactions: 0 };
    await pollAfter(1_000);
    expect(used.reads).toBe(1);
  });
});

describe('an answer that differs from the last one', () => {
  it('is judged, and its effect counts from the last confirmation', async () => {
    await pollAfter(20_000);
    const lastSeenAt = setup.clock.now();
    setup.plain.faults.plan = (method) =>
      method === 'getInstance' ? { error: new ProviderError('not_found', '404') } : 'none';
    setup.plain.vanish(instanceId);
    for (let polls = 0; polls < 15; polls++) await pollAfter(20_000);
    expect(await read(setup, id)).toMatchObject({ status: 'terminated-provider', stoppedAt: lastSeenAt });
  });

  it('becomes the reference for later answers, once it confirms the row', async () => {
    setup.plain.set(instanceId, { public_ip: '192.0.2.99' });
    await pollAfter(20_000);
    expect((await read(setup, id)).ipAddress).toBe('192.0.2.99');
    await pollAfter(20_000);
    used = { reads: 0, transactions: 0 };
    await pollAfter(20_000);
    expect(used).toEqual({ reads: 0, transactions: 0 });
  });

  it('is requested again where the row has changed in the meantime', async () => {
    setup.plain.set(instanceId, { status: 'STOPPED' });
    const { pollInstance } = setup.plain.client;
    let asked = 0;
    setup.plain.client.pollInstance = async (...args) => {
      const answer = await pollInstance(...args);
      if (++asked === 1) await change({ name: 'another' });
      return answer;
    };
    await pollAfter(20_000);
    expect(asked).toBe(2);
    expect((await read(setup, id)).suspicion).toMatchObject({ status: 'STOPPED', polls: 1 });
  });
});
