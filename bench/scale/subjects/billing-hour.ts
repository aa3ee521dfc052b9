import { openBillingJob } from '../../marketplace/billing-job.ts';
import { bytesWritten } from '../../support/cpu.ts';
import type { OpenSubject } from '../measure.ts';

const ROUND_MS = 30_000;
const ROUNDS = 120;

/** All rounds of the billing job in an hour in which n deployments run and nothing changes: 120, and each posts what is due. */
export const open: OpenSubject = async ({ n, createDatabase }) => {
  const database = await createDatabase();
  const job = await openBillingJob(database, n);
  const passAnHour = async (): Promise<{ cpuUs: number; bytes: number }> => {
    const sum = { cpuUs: 0, bytes: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      job.clock.step(ROUND_MS);
      await job.confirm();
      const before = bytesWritten();
      sum.cpuUs += await job.round();
      sum.bytes += bytesWritten() - before;
    }
    return sum;
  };
  return {
    round: async () => {
      const before = (await job.store.read.ledger.countRows()).uses;
      const { cpuUs, bytes } = await passAnHour();
      const slices = (await job.store.read.ledger.countRows()).uses - before;
      if (slices < n) throw new Error(`only ${slices} slices were posted of ${n} deployments`);
      return {
        cpuMs: cpuUs / 1000 / n,
        // So many cores would be busy with a million of them.
        coresAMillion: cpuUs / n / 3_600,
        slices: slices / n,
        // What PostgreSQL writes is another process's.
        ...(database.startsWith('sqlite:') && { kib: bytes / 1024 / n }),
      };
    },
    close: job.close,
  };
};
