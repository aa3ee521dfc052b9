import { measureCreates } from '../../marketplace/create-deployment.ts';
import type { OpenSubject } from '../measure.ts';

/** Measures creates of a team that has n deployments. */
export const open: OpenSubject = async ({ n, isQuick }) => ({
  round: async () => {
    const { cpuMs } = await measureCreates(n, { creates: isQuick ? 100 : 200 });
    return { cpuMs };
  },
  close: async () => undefined,
});
