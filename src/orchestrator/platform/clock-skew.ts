import type { Clock } from '../../ports/clock.ts';
import { callTimeoutMs } from './options.ts';

export const CLOCK_SKEW_ALARM =
  "the time here is too far from the database's: no work is claimed and nothing is ended until it is near; check NTP on both";

/** By how much the clocks of two servers that work on one database may differ: the margin that a lease has for one call. */
export function clockMarginMs({ leaseMs }: { leaseMs: number }): number {
  return callTimeoutMs(leaseMs);
}

/** Whether a lease that another process holds means here what it means there. */
export function isClockInSync(clock: Pick<Clock, 'offsetMs'>, options: { leaseMs: number }): boolean {
  return Math.abs(clock.offsetMs?.() ?? 0) <= clockMarginMs(options);
}
