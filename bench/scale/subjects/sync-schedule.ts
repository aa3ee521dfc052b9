import { Schedule } from '../../../src/marketplace/sync/schedule.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { cpuMeter, cpuOf } from '../../support/cpu.ts';
import type { OpenSubject } from '../measure.ts';

const EVERY_MS = 20_000;
const STEP_MS = 100;
const STEPS = 20;
const CONCURRENCY = 32;

/** The schedule of a provider's worker with n deployments, each of which is due every 20 seconds. */
export const open: OpenSubject = async ({ n, createDatabase }) => {
  const clock = new VirtualClock();
  let runs = 0;
  const run = async (): Promise<number> => {
    runs += 1;
    return EVERY_MS;
  };
  const schedule = new Schedule(clock, { concurrency: () => CONCURRENCY, run });
  for (let key = 0; key < n; key++) schedule.put(`dep-${key}`, (EVERY_MS * key) / n);
  const meter = await cpuMeter(await createDatabase());
  return {
    round: async () => {
      const before = runs;
      const cpuUs = await cpuOf(meter, async () => {
        for (let step = 0; step < STEPS; step++) await clock.advance(STEP_MS);
      });
      return { cpuUs: cpuUs / (runs - before) };
    },
    close: () => schedule.stop(),
  };
};
