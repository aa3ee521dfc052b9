import { openBillingJob } from '../../marketplace/billing-job.ts';
import { writeMeter } from '../../support/writes.ts';
import type { OpenSubject } from '../measure.ts';

const ROUND_MS = 30_000;
const ROUNDS = 120;

/**
 * Measures all rounds of the billing job in an hour with n running, unchanged deployments: 120 rounds, each of which
 * posts what is due.
 */
export const open: OpenSubject = async ({ n, createDatabase }) => {
  const database = await createDatabase();
  const job = await openBillingJob(database, n);
  const meter = await writeMeter(database, process.pid);
  const passAnHour = async (): Promise<{ cpuUs: number; bytes: number; transactions: number }> => {
    const sum = { cpuUs: 0, bytes: 0, transactions: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      job.clock.step(ROUND_MS);
      await job.confirm();
      const before = await meter.read();
      sum.cpuUs += await job.round();
      const after = await meter.read();
      sum.bytes += after.bytes - before.bytes;
      sum.transactions += after.transactions - before.transactions;
    }
    return sum;
  };
  return {
    round: async () => {
      const before = (await job.store.read.ledger.countRows()).uses;
      const { cpuUs, bytes, transactions } = await passAnHour();
      const slices = (await job.store.read.ledger.countRows()).uses - before;
      if (slices < n) throw new Error(`only ${slices} slices were posted of ${n} deployments`);
      return {
        cpuMs: cpuUs / 1000 / n,
        // Number of cores that a million of them would keep busy.
        coresAMillion: cpuUs / n / 3_600,
        slices: slices / n,
        writes: transactions / n,
        kib: bytes / 1024 / n,
      };
    },
    close: async () => {
      await meter.close();
      await job.close();
    },
  };
};
