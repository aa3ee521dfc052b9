import { measurePolls } from '../../orchestrator/polls.ts';
import type { OpenSubject } from '../measure.ts';

const POLLS_PER_SECOND = 500;

/** Polls of n instances in turn, the list of all of them, and the idle cost. */
export const open: OpenSubject = async ({ n, createDatabase, isQuick }) => ({
  round: async () => {
    const { idleShare, ...cost } = await measurePolls(createDatabase, {
      instances: n,
      pollsPerSecond: POLLS_PER_SECOND,
      seconds: isQuick ? 5 : 15,
      lists: isQuick ? 15 : 40,
    });
    return { ...cost, idlePercent: 100 * idleShare, listMb: cost.listBytes / 1e6 };
  },
  close: async () => undefined,
});
