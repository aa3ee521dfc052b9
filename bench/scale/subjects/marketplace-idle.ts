import { measureIdle } from '../../marketplace/marketplace-idle.ts';
import type { OpenSubject } from '../measure.ts';

/** A marketplace with n deployments and without requests. */
export const open: OpenSubject = async ({ n, isQuick }) => ({
  round: async () => {
    const times = isQuick ? { warmUpMs: 15_000, forMs: 15_000 } : { warmUpMs: 40_000, forMs: 60_000 };
    const { corePercent, pollsPerS } = await measureIdle(n, times);
    return { corePercent, pollsPerS };
  },
  close: async () => undefined,
});
