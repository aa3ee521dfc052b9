import type { InstanceRecord } from '../../model/records.ts';
import type { Lease } from '../../model/work.ts';
import { confirmRemoved } from '../../platform/confirm-gone.ts';
import { afterObservation, mayAppearForMs } from '../../platform/visibility.ts';
import type { StepContext } from '../context.ts';
import { endInstance } from '../destroy.ts';
import { isPastDeadline, LONGEST_REST_MS, retry } from '../retry.ts';
import { settleInstance } from '../settle.ts';

const RECLAIMING_POLL_MS = 2_000;
/** A platform that removes a machine for its own reasons is done sooner, in milliseconds. */
const LONGEST_RECLAIM_MS = 10 * 60_000;
const OVERDUE_POLL_MS = 60_000;

const OVERDUE =
  'the platform has been removing its machine for more than 10 minutes without an order of Berth: `berth instances rm` orders it';

/**
 * Releases the unit of an instance that ended without a request, once its time is over and its machine is proved gone.
 * While the platform shows the machine, the unit stays claimed and the machine is not touched; the sweep raises an
 * alarm. An instance that its platform removes then becomes DESTROYED. If that takes long, an operator has to order it.
 */
export async function stepRelease(context: StepContext, lease: Lease, record: InstanceRecord): Promise<void> {
  const found = await confirmRemoved(context, record);
  await settleInstance(
    context,
    lease,
    async (tx, current) => {
      const { deadlineAt, attempt } = lease;
      const now = context.clock.now();
      if (found.answer === 'unknown') return retry(context, lease, found.reason);
      if (found.answer === 'observed') {
        const isReclaimed = current.status === 'DESTROYING';
        if (isReclaimed && now - current.updatedAt > LONGEST_RECLAIM_MS)
          return { step: 'again', afterMs: OVERDUE_POLL_MS, problem: OVERDUE, isAlarm: true };
        const afterMs = isReclaimed ? RECLAIMING_POLL_MS : LONGEST_REST_MS;
        return { step: 'again', afterMs, attempt: attempt - 1 };
      }
      const hiddenMs = mayAppearForMs(context, current.createOpenUntil, found.observedAt);
      const restMs = deadlineAt === null || isPastDeadline(lease, now) ? hiddenMs : deadlineAt - now;
      if (restMs > 0)
        return { step: 'again', afterMs: Math.min(restMs, LONGEST_REST_MS), attempt: attempt - 1 };
      return endInstance(context, tx, current);
    },
    { visibility: afterObservation(found) },
  );
}
