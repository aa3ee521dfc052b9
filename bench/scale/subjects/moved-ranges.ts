import { measureMovedRanges } from '../../marketplace/moved-ranges.ts';
import type { OpenSubject } from '../measure.ts';

/** n deployments whose ranges all move to another process. */
export const open: OpenSubject = async ({ n, isQuick, createDatabase }) => ({
  round: async () => ({
    ...(await measureMovedRanges(n, { createDatabase, firstPollsS: isQuick ? 5 : 60 })),
  }),
  close: async () => undefined,
});
