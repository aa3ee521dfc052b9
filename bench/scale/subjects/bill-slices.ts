import { openBillingJob } from '../../marketplace/billing-job.ts';
import { bytesWritten } from '../../support/cpu.ts';
import type { OpenSubject } from '../measure.ts';

/** Minimum slices of a round. Each run of the job bills one new slice of each deployment. */
const SLICES = 2_000;
/** Each deployment has one slice in it. */
const HOUR_MS = 3_600_000;

/** Measures the billing job's rounds with n deployments, each with a slice due. */
export const open: OpenSubject = async ({ n, createDatabase }) => {
  const database = await createDatabase();
  const job = await openBillingJob(database, n);
  const { store, clock } = job;
  const billOnce = async (): Promise<{ cpuUs: number; bytes: number }> => {
    clock.step(HOUR_MS);
    await job.confirm();
    const before = bytesWritten();
    const cpuUs = await job.round();
    return { cpuUs, bytes: bytesWritten() - before };
  };
  await billOnce();
  return {
    round: async () => {
      const times = Math.max(1, Math.round(SLICES / n));
      const sum = { cpuUs: 0, bytes: 0 };
      for (let time = 0; time < times; time++) {
        const { cpuUs, bytes } = await billOnce();
        sum.cpuUs += cpuUs;
        sum.bytes += bytes;
      }
      const slices = times * n;
      await assertBilled();
      const cpuMs = sum.cpuUs / 1000 / slices;
      // PostgreSQL's writes belong to another process.
      const figures: Record<string, number> = { cpuMs };
      if (database.startsWith('sqlite:')) figures['kib'] = sum.bytes / 1024 / slices;
      return figures;
    },
    close: job.close,
  };

  async function assertBilled(): Promise<void> {
    const [segment] = await store.read.ledger.openSegments({ limit: 1 });
    if (segment === undefined || segment.postedUntil <= clock.now() - 2 * HOUR_MS)
      throw new Error('the job bills nothing');
  }
};
