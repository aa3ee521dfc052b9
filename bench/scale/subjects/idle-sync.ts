import { measureIdleSync } from '../../marketplace/marketplace-idle.ts';
import type { OpenSubject } from '../measure.ts';

const KIB = 1_024;
/** Limit on polls a second of 1,000 deployments. If changes are followed, each is polled every five to ten minutes. */
const MOST_POLLS = 10;

/** n running deployments that do not change, on either database. */
export const open = idleSync(false);

export function idleSync(listsChanges: boolean): OpenSubject {
  return async ({ n, isQuick, createDatabase }) => ({
    round: async () => {
      const isShort = isQuick && !listsChanges;
      // The first confirmation by changes takes up to a minute.
      const times = { warmUpMs: isShort ? 30_000 : 60_000, forMs: isQuick ? 20_000 : 60_000 };
      const { bytesADayOfOne, ...figures } = await measureIdleSync(n, {
        createDatabase,
        listsChanges,
        ...times,
      });
      if (listsChanges && figures.pollsPerSOf1000 > MOST_POLLS)
        throw new Error(
          `${figures.pollsPerSOf1000} polls a second: the changes of the provider are not followed`,
        );
      return { ...figures, kibADay: bytesADayOfOne / KIB };
    },
    close: async () => undefined,
  });
}
