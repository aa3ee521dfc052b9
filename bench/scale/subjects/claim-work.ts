import { orchestratorStores } from '../../../src/compose/stores/orchestrator.ts';
import { openIn } from '../../../src/compose/stores/stores.ts';
import { systemClock as clock } from '../../../src/runtime/system.ts';
import { storeInstances } from '../../orchestrator/stored-instances.ts';
import { cpuMeter, cpuOf } from '../../support/cpu.ts';
import { multiplyRows, numbered } from '../../support/multiply-rows.ts';
import type { OpenSubject } from '../measure.ts';

const TIMES = 300;
const HOUR_MS = 3_600_000;

/** Measures the queue of durable work while n rows wait for an hour, and one at a time becomes due. */
export const open: OpenSubject = async ({ n, createDatabase }) => {
  const database = await createDatabase();
  const { ids } = await storeInstances(database, 2);
  const [dueId = '', waitingId = ''] = ids;
  const work = { resourceKind: 'instance', kind: 'create', deadlineAt: null } as const;
  const filled = await openIn(orchestratorStores, database, {});
  await filled.transact(async (tx) => {
    await tx.work.put({ ...work, resourceId: waitingId, notBefore: clock.now() + HOUR_MS });
  });
  await filled.close();
  await multiplyRows(database, [
    {
      table: 'work',
      where: `resource_id = '${waitingId}'`,
      count: n - 1,
      change: { resource_id: numbered('inst') },
    },
  ]);
  const store = await openIn(orchestratorStores, database, {});
  const meter = await cpuMeter(database);
  const claimOne = async (): Promise<void> => {
    const now = clock.now();
    await store.transact((tx) => tx.work.put({ ...work, resourceId: dueId, notBefore: now }));
    const [lease] = await store.claimWork({
      platform: 'default',
      owner: 'bench',
      now: clock.now(),
      leaseUntil: now + HOUR_MS,
      limit: 10,
      resourceKind: 'instance',
    });
    if (lease?.resourceId !== dueId) throw new Error('what is due is not claimed');
    if ((await store.nextWorkAt('default')) === null) throw new Error('the rows that wait are not there');
    await store.transact((tx) => tx.work.finish(lease));
  };
  const claimAll = async (): Promise<void> => {
    for (let time = 0; time < TIMES; time++) await claimOne();
  };
  await claimAll();
  return {
    round: async () => ({ cpuMs: (await cpuOf(meter, claimAll)) / 1000 / TIMES }),
    close: () => store.close(),
  };
};
