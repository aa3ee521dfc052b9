import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type InstanceStatus, instanceTransitions } from '../../src/contract/instance.ts';
import { canTransition, IllegalTransition } from '../../src/contract/transitions.ts';
import { withFaults } from '../../src/drivers/kit/faults.ts';
import type { Offer } from '../../src/orchestrator/catalog/catalog.ts';
import { transition } from '../../src/orchestrator/instances/transition.ts';
import type { InstanceRecord } from '../../src/orchestrator/model/records.ts';
import type { Transaction } from '../../src/orchestrator/model/store.ts';
import type { Fault } from '../../src/platform-model/call-faults.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { PATIENCE_MS } from '../support/time/until.ts';

const states = Object.keys(instanceTransitions) as InstanceStatus[];
/** States whose instance holds a unit of capacity; in the others it may, while something is under way. */
const mustHold = new Set<InstanceStatus>(['PROVISIONING', 'ONLINE', 'STOPPING']);

it('writes exactly the transitions of the table, and time never goes back [random-transitions-lawful]', async () => {
  const arbitrary = fc.record({
    from: fc.constantFrom(...states),
    to: fc.constantFrom(...states),
    now: fc.integer({ min: 0, max: 100 }),
    updatedAt: fc.integer({ min: 0, max: 100 }),
  });
  await fc.assert(
    fc.asyncProperty(arbitrary, async ({ from, to, now, updatedAt }) => {
      const written: InstanceRecord[] = [];
      const tx = {
        instances: { update: async (record: InstanceRecord) => void written.push(record) },
        history: { moved: async () => undefined },
      } as unknown as Transaction;
      const move = transition(tx, { id: 'a', status: from, updatedAt } as InstanceRecord, to, now);
      if (!canTransition(instanceTransitions, from, to)) {
        await expect(move).rejects.toThrow(IllegalTransition);
        expect(written).toEqual([]);
        return;
      }
      expect(await move).toMatchObject({ status: to, updatedAt: Math.max(now, updatedAt) });
    }),
  );
});

type Command =
  | { do: 'create' }
  | { do: 'stop' | 'start' | 'delete' | 'poll'; which: number }
  | { do: 'platform'; which: number; what: 'stop' | 'destroy' }
  | { do: 'wait'; ms: number }
  /** Until nothing is left to do. */
  | { do: 'settle' };

const which = fc.nat({ max: 2 });
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Command>({ do: 'create' }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('stop' as const, 'start' as const, 'delete' as const, 'poll' as const),
      which,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('platform' as const),
      which,
      what: fc.constantFrom('stop' as const, 'destroy' as const),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat({ max: 60 }) }) },
  { weight: 8, arbitrary: fc.constant<Command>({ do: 'settle' }) },
);
const fault = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Fault>('none') },
  { weight: 1, arbitrary: fc.constantFrom<Fault>('fail-before', 'fail-after') },
);

const UNITS = 3;
const OFFER = 'cpu-4x16';
const REGION = 'eu-frankfurt';

it('whatever is asked, and whatever calls fail: lawful paths only, capacity never oversold, and nothing left in the end [random-lifecycles]', async () => {
  const edgesSeen = new Set<string>();
  const run = fc.asyncProperty(
    fc.array(command, { minLength: 15, maxLength: 30 }),
    fc.array(fault, { minLength: 40, maxLength: 40 }),
    async (commands, faults) => {
      let calls = 0;
      let areFaultsOn = true;
      const wrapDriver = (driver: Parameters<typeof withFaults>[0]) => {
        return withFaults(driver, ({ method }) =>
          areFaultsOn && method !== 'list' && method !== 'get'
            ? (faults[calls++ % faults.length] ?? 'none')
            : 'none',
        );
      };
      await using orchestrator = await startTestOrchestrator({
        wrapDriver,
        platform: { boot_ms: [0, 20], stop_ms: [0, 10], start_ms: [0, 20], destroy_ms: [0, 10] },
        changeOffer: (offer) => (offer.id === OFFER ? threeUnits(offer) : offer),
      });
      const history = follow(orchestrator);
      const ids: string[] = [];
      for (const step of commands) {
        await perform(orchestrator, step, ids);
        await assertCapacity(orchestrator);
      }
      areFaultsOn = false;
      for (const id of ids) await orchestrator.request('DELETE', `/instances/${id}`);
      for (const id of ids) await orchestrator.waitFor(id, 'GONE');
      expect(history.illegal).toEqual([]);
      for (const edge of history.edges) edgesSeen.add(edge);
      expect(await orchestrator.simulator.list()).toEqual({ answer: 'listed', items: [] });
      expect(await orchestrator.store.read.claims.use()).toEqual([]);
      expect((await orchestrator.store.read.work.backlog()).count).toBe(0);
    },
  );
  await fc.assert(run, {
    numRuns: 12,
    seed: 20261121,
    endOnFailure: true,
    examples: [[wholeLife, ['none']]],
  });
  expect([...edgesSeen]).toEqual(
    expect.arrayContaining([
      'PROVISIONING → ONLINE',
      'ONLINE → STOPPING',
      'STOPPING → STOPPED',
      'STOPPED → ONLINE',
      'ONLINE → DESTROYING',
    ]),
  );
});

/** Whatever chance does, every common edge is taken once. */
const wholeLife: Command[] = [
  ...[{ do: 'create' } as const, { do: 'settle' } as const],
  ...[{ do: 'stop', which: 0 } as const, { do: 'settle' } as const],
  ...[{ do: 'start', which: 0 } as const, { do: 'settle' } as const],
];

function threeUnits(offer: Offer): Offer {
  return { ...offer, placements: [{ region: REGION, units: UNITS }] };
}

/** Every status that was ever committed must follow from the one before it. */
function follow({ store }: TestOrchestrator): { illegal: string[]; edges: Set<string> } {
  const last = new Map<string, InstanceStatus>();
  const illegal: string[] = [];
  const edges = new Set<string>();
  store.subscribe({
    instancesChanged: (records) => {
      for (const { id, status } of records) {
        const before = last.get(id);
        if (before !== undefined && before !== status && !canTransition(instanceTransitions, before, status))
          illegal.push(`${id}: ${before} → ${status}`);
        if (before !== undefined) edges.add(`${before} → ${status}`);
        last.set(id, status);
      }
    },
  });
  return { illegal, edges };
}

async function perform(orchestrator: TestOrchestrator, step: Command, ids: string[]): Promise<void> {
  const { request, simulator } = orchestrator;
  if (step.do === 'wait') return void (await new Promise((resolve) => setTimeout(resolve, step.ms)));
  if (step.do === 'settle')
    return void (await expect
      .poll(async () => (await orchestrator.store.read.work.backlog()).count, {
        timeout: PATIENCE_MS,
        interval: 5,
      })
      .toBe(0));
  if (step.do === 'create') {
    const { status, body } = await request('POST', '/instances', {
      body: instanceRequest({ configuration_id: OFFER, region: REGION }),
    });
    expect([201, 409]).toContain(status);
    if (status === 201) ids.push(String(body['id']));
    return;
  }
  const id = ids[step.which % Math.max(ids.length, 1)];
  if (id === undefined) return;
  if (step.do === 'platform')
    return void (await (step.what === 'destroy'
      ? simulator.destroy(`berth-${id}`, null, anOrder)
      : simulator[step.what](`berth-${id}`, null)));
  if (step.do === 'poll')
    return expect([200, 404]).toContain((await request('GET', `/instances/${id}`)).status);
  const method = step.do === 'delete' ? 'DELETE' : 'POST';
  const path = step.do === 'delete' ? '' : `/${step.do}`;
  expect([200, 404, 409]).toContain((await request(method, `/instances/${id}${path}`)).status);
}

async function assertCapacity({ store }: TestOrchestrator): Promise<void> {
  await store.transact(async (tx) => {
    const held = (await tx.claims.use()).reduce((sum, { claimed }) => sum + claimed, 0);
    expect(held).toBeLessThanOrEqual(UNITS);
    let holders = 0;
    for (const { id, status } of await tx.instances.list({})) {
      const holds = await tx.claims.isHeldBy(id);
      if (mustHold.has(status)) expect([id, status, holds]).toEqual([id, status, true]);
      const isIdle = (await tx.work.of(id)) === null;
      if (!mustHold.has(status) && isIdle) expect([id, status, holds]).toEqual([id, status, false]);
      holders += Number(holds);
    }
    expect(holders).toBe(held);
  });
}

it('the capacity ledger gives at most what there is, for any order of taking and giving back', async () => {
  await using orchestrator = await startTestOrchestrator();
  const { store } = orchestrator;
  const ids = await seedInstances(orchestrator, 8);
  const operation = fc.record({ take: fc.boolean(), index: fc.nat({ max: 7 }) });
  const run = fc.asyncProperty(
    fc.array(operation, { maxLength: 40 }),
    fc.nat({ max: 4 }),
    async (operations, capacity) => {
      const model = new Set<string>();
      const apply = async ({ claims }: Transaction, instanceId: string, take: boolean): Promise<void> => {
        const expected = model.has(instanceId) || (take && model.size < capacity);
        if (expected && take) model.add(instanceId);
        else model.delete(instanceId);
        const answer = await (take
          ? claims.take({ instanceId, offerId: OFFER, region: REGION, capacity })
          : claims.release(instanceId));
        expect(answer).toBe(expected);
      };
      await store.transact(async (tx) => {
        for (const id of ids) await tx.claims.release(id);
        for (const { take, index } of operations) await apply(tx, ids[index] ?? '', take);
        expect((await tx.claims.use()).reduce((sum, { claimed }) => sum + claimed, 0)).toBe(model.size);
      });
    },
  );
  await fc.assert(run, { numRuns: 100 });
});

async function seedInstances(orchestrator: TestOrchestrator, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let made = 0; made < count; made++) {
    const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
    ids.push(String(body['id']));
  }
  for (const id of ids) await orchestrator.waitFor(id, 'ONLINE');
  return ids;
}
