import { measurePolls } from '../../orchestrator/polls.ts';
import type { OpenSubject } from '../measure.ts';

/** Memory that n instances occupy permanently. */
export const open: OpenSubject = async ({ n, createDatabase }) => ({
  round: async () => {
    const { rssMb } = await measurePolls(createDatabase, { instances: n, seconds: 1, lists: 1 });
    return { rssMb };
  },
  close: async () => undefined,
});
