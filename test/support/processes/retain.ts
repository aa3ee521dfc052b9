import { orchestratorStores } from '../../../src/compose/stores/orchestrator.ts';
import { openIn } from '../../../src/compose/stores/stores.ts';
import { pruneTombstones } from '../../../src/orchestrator/queue/housekeeping.ts';

// One life of a process that prunes tombstones until nothing is left to do. It says `begun` at its first transaction; at
// the one that `dieAt` counts it kills itself before the commit.

const [database = '', now, dieAt] = process.argv.slice(2);
let transactions = 0;

/** Counts a transaction, of which `body` is all but the commit. */
async function counted<T>(body: () => Promise<T>): Promise<T> {
  if (transactions === 0) process.stdout.write('begun\n');
  const result = await body();
  transactions += 1;
  if (transactions === Number(dieAt)) process.kill(process.pid, 'SIGKILL');
  return result;
}

/** More rounds than the tombstones of the test need. */
const ROUNDS = 25;

const opened = await openIn(orchestratorStores, database, {});
const store: typeof opened = {
  ...opened,
  transact: (body) => opened.transact((tx) => counted(() => body(tx))),
};
for (let round = 0; round < ROUNDS; round++) await pruneTombstones(store, 'default', Number(now));
await store.close();
