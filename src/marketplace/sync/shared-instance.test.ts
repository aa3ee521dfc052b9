import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ProviderFaultPlan } from '../../../test/support/doubles/provider-faults.ts';
import { runningDeployment } from '../../../test/support/rows/marketplace-rows.ts';
import { transition } from '../deployments/transition.ts';
import { cleanUpLost } from '../operate/actions.ts';
import {
  accept,
  countLines,
  MINUTE_MS,
  openProviderWorkers,
  read,
  running,
  type SyncSetup,
  statuses,
} from './sync.fixture.ts';

const known = () => ({ has: () => true });

let setup: SyncSetup;
beforeEach(async () => {
  setup = await openProviderWorkers();
});
afterEach(() => setup.close());

const ours = (number: number) => `bm-00c0ffee-${String(number).padStart(32, '0')}`;
const deletes = () => setup.plain.faults.countOf('deleteInstance');
const keptAlarms = () =>
  countLines(setup.logged, 'error', 'not deleting an instance that belongs to another deployment');
const orphanWarnings = () => countLines(setup.logged, 'warn', 'no deployment needs');

async function terminate(...ids: string[]): Promise<void> {
  await setup.store.transact(async (tx) => {
    for (const id of ids) {
      const record = await tx.deployments.byId(id);
      if (record !== null)
        await transition(setup.deps, tx, record, { to: 'terminated', at: setup.clock.now() });
    }
  });
}

async function lose(id: string): Promise<void> {
  const record = await read(setup, id);
  await setup.store.transact(async (tx) => {
    const isLoss = { to: 'terminated-provider', at: setup.clock.now(), isLoss: true } as const;
    await transition(setup.deps, tx, record, isLoss);
  });
}

/** Gives a second deployment the instance of the first, as a restored database may have it. */
async function share(instanceId: string): Promise<string> {
  const id = `dep-${String(2).padStart(32, '0')}`;
  const at = setup.clock.now();
  const times = { createdAt: at, startedAt: at, observedAt: at };
  const there = { providerId: 'provider-x', region: 'eu-one', offerId: 'gpu-1', providerName: ours(2) };
  await setup.store.transact((tx) =>
    tx.deployments.insert(
      runningDeployment({ id, ...there, ...times, providerInstanceId: instanceId, sshProof: null }),
    ),
  );
  return id;
}

describe('a provider that gives two deployments one instance', () => {
  const answer = (plan: (instanceId: string) => ReturnType<ProviderFaultPlan>) => (instanceId: string) => {
    setup.plain.faults.plan = (method) => (method === 'createInstance' ? plan(instanceId) : 'none');
  };
  const rename = (instanceId: string) => setup.plain.set(instanceId, { name: ours(2) });
  const asIs = (instanceId: string) => ({ instead: setup.plain.get(instanceId) });

  it.each([
    ['in the answer to a create [shared-instance-answer]', answer(asIs)],
    [
      'in the answer to a create, under the name of the second [shared-instance-renamed]',
      answer((instanceId) => {
        rename(instanceId);
        return asIs(instanceId);
      }),
    ],
    [
      'in its list, after the answer to a create was lost [shared-instance-listed]',
      answer((instanceId) => {
        rename(instanceId);
        return 'lose';
      }),
    ],
  ])('fails the second, with an alarm, and the first keeps it: %s', async (_, fault) => {
    const first = await running(setup);
    fault(first.instanceId);
    const second = await accept(setup, { number: 2 });
    await setup.clock.advance(20 * MINUTE_MS);
    expect(await read(setup, second)).toMatchObject({
      status: 'failed',
      failureReason: 'provider_error',
      failureDetails: 'provider-x answered with the machine of another deployment.',
      providerInstanceId: null,
      startedAt: null,
      cleanup: 'done',
    });
    const alarms = setup.logged.filter(({ message }) =>
      message.includes('with the instance of another deployment: '),
    );
    expect(alarms).toMatchObject([
      { level: 'error', fields: { deployment: second, instance: first.instanceId } },
    ]);
    expect(await read(setup, first.id)).toMatchObject({ status: 'running' });
    expect([statuses(setup.plain), deletes()]).toEqual([['ONLINE'], 0]);
    // If the name matches, the clean-up of the second finds the instance once; the sweep does not treat it as an
    // orphan.
    expect(keptAlarms()).toBeLessThanOrEqual(1);
    expect(orphanWarnings()).toBe(0);

    await terminate(first.id);
    await setup.clock.advance(MINUTE_MS);
    expect([(await read(setup, first.id)).cleanup, statuses(setup.plain)]).toEqual(['done', []]);
  });

  it('fails the second also where the first has not heard of its instance yet [shared-instance-early]', async () => {
    const unlisted: ProviderFaultPlan = (method) => (method === 'listInstances' ? 'refuse' : 'none');
    setup.plain.faults.plan = (method, ...call) =>
      method === 'createInstance' ? 'commit-then-lose' : unlisted(method, ...call);
    const first = await accept(setup, { number: 1 });
    setup.workers.start();
    await setup.clock.advance(10_000);
    const [made] = setup.plain.instances;
    expect([made?.name, (await read(setup, first)).providerInstanceId]).toEqual([ours(1), null]);
    setup.plain.faults.plan = (method, ...call) =>
      method === 'createInstance' ? { instead: made } : unlisted(method, ...call);
    const second = await accept(setup, { number: 2 });
    await setup.clock.advance(10_000);
    expect(await read(setup, second)).toMatchObject({ status: 'failed', providerInstanceId: null });
    setup.plain.faults.plan = () => 'none';
    await setup.clock.advance(10 * MINUTE_MS);
    expect(await read(setup, first)).toMatchObject({ status: 'running', providerInstanceId: made?.id });
    expect([statuses(setup.plain), deletes()]).toEqual([['ONLINE'], 0]);
  });

  it('fails the second while the instance of the first is being deleted [shared-instance-deleted]', async () => {
    const first = await running(setup);
    setup.plain.faults.plan = (method) => {
      if (method === 'createInstance') return asIs(first.instanceId);
      return method === 'deleteInstance' ? 'lose' : 'none';
    };
    await terminate(first.id);
    await setup.clock.advance(MINUTE_MS);
    const second = await accept(setup, { number: 2 });
    await setup.clock.advance(MINUTE_MS);
    expect(await read(setup, second)).toMatchObject({ status: 'failed', failureReason: 'provider_error' });
  });

  it('fails the second also where the first was lost: its instance may be there [shared-instance-lost]', async () => {
    const first = await running(setup);
    await lose(first.id);
    setup.plain.faults.plan = (method) => (method === 'createInstance' ? asIs(first.instanceId) : 'none');
    const second = await accept(setup, { number: 2 });
    await setup.clock.advance(MINUTE_MS);
    expect(await read(setup, second)).toMatchObject({
      status: 'failed',
      failureReason: 'provider_error',
      cleanup: 'done',
    });
    expect([statuses(setup.plain), deletes()]).toEqual([['ONLINE'], 0]);
  });
});

describe('an instance that two rows have', () => {
  it.each([
    ['first', 'second'],
    ['second', 'first'],
  ] as const)(
    'is kept when the %s ends, with an alarm, and is deleted when the %s ends too',
    async (one, two) => {
      const { id, instanceId } = await running(setup);
      const ids = { first: id, second: await share(instanceId) };
      await terminate(ids[one]);
      await setup.clock.advance(20 * MINUTE_MS);
      expect([keptAlarms(), orphanWarnings()]).toEqual([1, 0]);
      expect(await read(setup, ids[one])).toMatchObject({ status: 'terminated', cleanup: 'done' });
      expect(await read(setup, ids[two])).toMatchObject({ status: 'running' });
      expect([statuses(setup.plain), deletes()]).toEqual([['ONLINE'], 0]);
      await terminate(ids[two]);
      await setup.clock.advance(MINUTE_MS);
      expect([(await read(setup, ids[two])).cleanup, statuses(setup.plain)]).toEqual(['done', []]);
    },
  );

  it('is deleted when both end at the same moment', async () => {
    const { id, instanceId } = await running(setup);
    const second = await share(instanceId);
    await terminate(id, second);
    await setup.clock.advance(15 * MINUTE_MS);
    for (const ended of [id, second]) expect((await read(setup, ended)).cleanup).toBe('done');
    expect(statuses(setup.plain)).toEqual([]);
  });

  it('is kept when an operator cleans up the one that was lost [shared-instance-clean-up]', async () => {
    const { id, instanceId } = await running(setup);
    await lose(id);
    const second = await share(instanceId);
    await cleanUpLost.perform(
      { ...setup.deps, providers: known },
      { name: 'mara', source: 'cli', address: null },
      { deploymentId: id },
    );
    await setup.clock.advance(20 * MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({ status: 'terminated-provider', cleanup: 'done' });
    expect(await read(setup, second)).toMatchObject({ status: 'running' });
    expect([statuses(setup.plain), deletes()]).toEqual([['ONLINE'], 0]);
  });
});
