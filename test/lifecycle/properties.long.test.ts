import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type InstanceStatus, instanceTransitions } from '../../src/contract/instance.ts';
import { canTransition, IllegalTransition } from '../../src/contract/transitions.ts';
import { transition } from '../../src/orchestrator/instances/transition.ts';
import type { InstanceRecord } from '../../src/orchestrator/model/records.ts';
import type { Transaction } from '../../src/orchestrator/model/store.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

const states = Object.keys(instanceTransitions) as InstanceStatus[];
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

const OFFER = 'cpu-4x16';
const REGION = 'eu-frankfurt';

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
