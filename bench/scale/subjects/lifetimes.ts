import { measureLifetimes } from '../../orchestrator/lifetimes.ts';
import type { OpenSubject } from '../measure.ts';

const AT_ONCE = 32;

/** Lifetimes from the create to the 404, one after another, next to n permanent instances. */
export const open: OpenSubject = async ({ n, createDatabase, isQuick }) => ({
  round: async () => {
    const lifetimes = isQuick ? 150 : 600;
    const { cpuMs, berthCpuMs, fsyncs, perSecond } = await measureLifetimes(await createDatabase(), {
      stored: n,
      lifetimes,
      atOnce: AT_ONCE,
      rounds: 1,
    });
    return { cpuMs, berthCpuMs, perSecond, ...(fsyncs !== null && { fsyncs }) };
  },
  close: async () => undefined,
});
