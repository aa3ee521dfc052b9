import { openBillingJob } from '../../marketplace/billing-job.ts';
import type { OpenSubject } from '../measure.ts';

const ROUND_MS = 30_000;
const ROUNDS = 120;

/** All rounds of the billing job in an hour in which n deployments run and nothing changes: 120, and each posts what is due. */
export const open: OpenSubject = async ({ n, createDatabase }) => {
  const job = await openBillingJob(await createDatabase(), n);
  const passAnHour = async (): Promise<number> => {
    let cpuUs = 0;
    for (let round = 0; round < ROUNDS; round++) {
      job.clock.step(ROUND_MS);
      await job.confirm();
      cpuUs += await job.round();
    }
    return cpuUs;
  };
  return {
    round: async () => {
      const before = (await job.store.read.ledger.countRows()).uses;
      const cpuUs = await passAnHour();
      const slices = (await job.store.read.ledger.countRows()).uses - before;
      if (slices < n) throw new Error(`only ${slices} slices were posted of ${n} deployments`);
      // So many cores would be busy with a million of them.
      return { cpuMs: cpuUs / 1000 / n, coresAMillion: cpuUs / n / 3_600, slices: slices / n };
    },
    close: job.close,
  };
};
