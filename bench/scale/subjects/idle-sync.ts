import { measureIdleSync } from '../../marketplace/marketplace-idle.ts';
import type { OpenSubject } from '../measure.ts';

const KIB = 1_024;

/** n running deployments that do not change, on either database. */
export const open = idleSync(false);

export function idleSync(listsChanges: boolean): OpenSubject {
  return async ({ n, isQuick, createDatabase }) => ({
    round: async () => {
      const times = isQuick ? { warmUpMs: 30_000, forMs: 20_000 } : { warmUpMs: 60_000, forMs: 60_000 };
      const { bytesADayOfOne, ...figures } = await measureIdleSync(n, {
        createDatabase,
        listsChanges,
        ...times,
      });
      return { ...figures, kibADay: bytesADayOfOne / KIB };
    },
    close: async () => undefined,
  });
}
