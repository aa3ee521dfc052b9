import type { Clock } from '../../ports/clock.ts';
import { callTimeoutMs } from './options.ts';

export const outOfStep =
  "the time here is too far from the database's: no work is claimed and nothing is ended until it is near; check NTP on both";

/**
 * Whether a lease that another process holds means here what it means there: the time differs from the database's by
 * no more than the margin that a lease has for one call.
 */
export function isInStep(clock: Pick<Clock, 'offsetMs'>, { leaseMs }: { leaseMs: number }): boolean {
  return Math.abs(clock.offsetMs?.() ?? 0) <= callTimeoutMs(leaseMs);
}
