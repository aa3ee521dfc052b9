import type { DeploymentRecord } from '../records/deployment-record.ts';

type Times = Pick<DeploymentRecord, 'startedAt' | 'stoppedAt' | 'pausedAt' | 'pausedMs'>;

/** How long it was stopped in all, in milliseconds: the stops that are over, and the one that is not. */
export function stoppedMs({ stoppedAt, pausedAt, pausedMs }: Times, now: number): number {
  return pausedMs + (pausedAt === null ? 0 : Math.max(0, (stoppedAt ?? now) - pausedAt));
}

/**
 * How long it ran, in milliseconds, from the first observed `running` (M: Deployments, rule 4: "Time stopped does not
 * count").
 */
export function runningMs(times: Times, now: number): number {
  if (times.startedAt === null) return 0;
  return Math.max(0, (times.stoppedAt ?? now) - times.startedAt - stoppedMs(times, now));
}
