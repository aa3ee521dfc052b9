import { measureIdleSync } from '../../marketplace/marketplace-idle.ts';
import type { OpenSubject } from '../measure.ts';

const KIB = 1_024;

/** n running deployments that do not change, on either database. */
export const open: OpenSubject = async ({ n, isQuick, createDatabase }) => ({
  round: async () => {
    const times = { warmUpMs: isQuick ? 30_000 : 60_000, forMs: isQuick ? 20_000 : 60_000 };
    const { bytesADayOfOne, ...figures } = await measureIdleSync(n, { createDatabase, ...times });
    return { ...figures, kibADay: bytesADayOfOne / KIB };
  },
  close: async () => undefined,
});
