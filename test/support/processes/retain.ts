import { marketplaceStores } from '../../../src/compose/stores/marketplace.ts';
import { orchestratorStores } from '../../../src/compose/stores/orchestrator.ts';
import { openIn } from '../../../src/compose/stores/stores.ts';
import { RollUp } from '../../../src/marketplace/ledger/roll-up.ts';
import { defaultOptions } from '../../../src/marketplace/model/options.ts';
import { pruneTombstones } from '../../../src/orchestrator/queue/housekeeping.ts';
import type { Log } from '../../../src/ports/log.ts';
import { systemRandom as random } from '../../../src/runtime/system.ts';
import { silentLog } from '../doubles/log.ts';
import { VirtualClock } from '../time/virtual-clock.ts';

// One life of a process that rolls a ledger up, or prunes tombstones, until nothing is left to do. It says `begun` at its
// first transaction; at the one that `dieAt` counts it kills itself before the commit.

const [subject, database = '', now, dieAt] = process.argv.slice(2);
let transactions = 0;
const log: Log = {
  ...silentLog,
  error: (fields, message) => {
    throw new Error(`${message}: ${JSON.stringify(fields)}`);
  },
};

/** Counts a transaction, of which `body` is all but the commit. */
async function counted<T>(body: () => Promise<T>): Promise<T> {
  if (transactions === 0) process.stdout.write('begun\n');
  const result = await body();
  transactions += 1;
  if (transactions === Number(dieAt)) process.kill(process.pid, 'SIGKILL');
  return result;
}

async function rollUp(): Promise<void> {
  const opened = await openIn(marketplaceStores, database, {});
  const store: typeof opened = {
    ...opened,
    transact: (body) => opened.transact((tx) => counted(() => body(tx))),
  };
  const clock = new VirtualClock(Number(now));
  const { periodMs } = defaultOptions.billing.rollUp;
  const job = new RollUp({ store, clock, random, log, options: defaultOptions });
  while ((await store.read.ledger.toRollUp({ until: Number(now), periodMs, limit: 1 })).length > 0)
    await job.run();
  await job.stop();
  await store.close();
}

/** More rounds than the tombstones of the test need. */
const ROUNDS = 25;

async function prune(): Promise<void> {
  const opened = await openIn(orchestratorStores, database, {});
  const store: typeof opened = {
    ...opened,
    transact: (body) => opened.transact((tx) => counted(() => body(tx))),
  };
  for (let round = 0; round < ROUNDS; round++) await pruneTombstones(store, 'default', Number(now));
  await store.close();
}

await (subject === 'roll-up' ? rollUp() : prune());
