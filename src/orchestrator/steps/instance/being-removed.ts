import type { Lease } from '../../model/work.ts';
import type { ReconcileContext } from '../../platform/context.ts';
import type { Again, Next } from '../settle.ts';

const POLL_MS = 2_000;
const OVERDUE_POLL_MS = 60_000;
/** A platform that removes a machine for its own reasons is done sooner, in milliseconds. */
export const LONGEST_RECLAIM_MS = 10 * 60_000;

const OVERDUE =
  'the platform has been removing its machine for more than 10 minutes without an order of Berth: `berth instances rm` orders it';

/**
 * Waits for a machine that its platform is removing without an order. If that is overdue, an alarm asks the operator for the
 * order: only people order a removal.
 */
export function whileRemoving({ attempt }: Lease, isOverdue: boolean): Again {
  return isOverdue
    ? { step: 'again', afterMs: OVERDUE_POLL_MS, problem: OVERDUE, isAlarm: true }
    : { step: 'again', afterMs: POLL_MS, attempt: attempt - 1 };
}

/** Waits within `step`. The removal is overdue past the deadline of the work, which survives a restart. */
export function awaitRemoval({ clock }: ReconcileContext, lease: Lease, step: 'observe' | 'stop'): Next {
  const now = clock.now();
  const overdueAt = now + LONGEST_RECLAIM_MS;
  // A later deadline was written by a clock that was ahead.
  if (lease.deadlineAt === null || lease.deadlineAt > overdueAt) return { step, deadlineAt: overdueAt };
  return whileRemoving(lease, now >= lease.deadlineAt);
}
