import type { Clock } from '../ports/clock.ts';

// All times of leases. Work under a lease must have stopped when the lease ends, so its time limits derive from the
// duration of the lease. There are three kinds of leases:
//
// | a lease on | lasts | is renewed | its holder stops |
// |---|---|---|---|
// | a row of work | 30 s | only while a call that was given up still runs | before a call that could outlast it |
// | a share of the work | 30 s | every third of it | when it was not renewed in time |
// | a job | 60 s, or three rounds | by each round | a round starts nothing after a third of it |

/** The lease on a row of work: after a crash, the work is free again when it expires. */
export const WORK_LEASE_MS = 30_000;

/** The upper limit of a call's timeout, for any lease. */
const MAX_CALL_MS = 20_000;

/**
 * The timeout of one call to a platform. A step makes up to two calls, waits for two listings and then writes, all
 * within its lease. A delete may also wait for one more listing while a host is silent. If that takes too long, the next
 * attempt sends the removal.
 */
export function callTimeoutMs(leaseMs: number): number {
  return Math.min(MAX_CALL_MS, leaseMs / 4);
}

/** The timeout of a call to a platform. A driver's own time limits are shorter, so that its errors name the cause. */
export const DEFAULT_CALL_MS = callTimeoutMs(WORK_LEASE_MS);

/** The shortest pause between two listings. It is short compared with the lease of a step that waits for a listing. */
export function listPauseMs(leaseMs: number): number {
  return Math.min(250, leaseMs / 8);
}

/** What must be left of a lease after a call's timeout, for the renewal of a call that was given up. */
export function renewalReserveMs(leaseMs: number): number {
  return leaseMs / 16;
}

/** A lease is renewed when less than this is left of it. */
export function renewBelowMs(leaseMs: number): number {
  return leaseMs / 2;
}

/** The interval between two checks whether a lease must be renewed, or whether another process's lease has expired. */
export function leaseCheckMs(leaseMs: number): number {
  return leaseMs / 3;
}

/** How far the clocks of two servers on one database may differ: the time that a lease reserves for one call. */
export function clockMarginMs({ leaseMs }: { leaseMs: number }): number {
  return callTimeoutMs(leaseMs);
}

/** Whether the end of another process's lease means the same on this clock. */
export function isClockInSync(clock: Pick<Clock, 'offsetMs'>, options: { leaseMs: number }): boolean {
  return Math.abs(clock.offsetMs?.() ?? 0) <= clockMarginMs(options);
}

const SHARED_MS = 30_000;

/** A lease that processes share out. `callMs`: the default timeout of a call under it. */
export const SHARED_LEASE = { ttlMs: SHARED_MS, renewMs: SHARED_MS / 3, callMs: SHARED_MS / 3 };

const MIN_JOB_MS = 60_000;

/** How long the lease on a job lasts whose rounds begin `everyMs` apart. */
export function jobLeaseMs(everyMs: number): number {
  return Math.max(MIN_JOB_MS, 3 * everyMs);
}

/** A round of a job starts nothing more after this time. The next round continues. */
export const JOB_ROUND_MS = MIN_JOB_MS / 3;

/**
 * Longer than any lease or pause. A later end was written with a wrong clock and counts as past, so that it cannot block
 * forever. A holder that loses its lease this way can write nothing: the token has changed.
 */
export const FARTHEST_MS = 2 * 3_600_000;

/** The lease of the only process on its database, such as a sandbox: it outlasts any advance of the clock. */
export const SOLE_LEASE_MS = 100 * 365 * 86_400_000;
