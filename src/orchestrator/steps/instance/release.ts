import type { InstanceRecord } from '../../model/records.ts';
import type { Lease } from '../../model/work.ts';
import { confirmRemoved } from '../../platform/confirm-gone.ts';
import { afterObservation, mayAppearForMs } from '../../platform/visibility.ts';
import type { StepContext } from '../context.ts';
import { endInstance } from '../destroy.ts';
import { isPastDeadline, LONGEST_REST_MS, retry } from '../retry.ts';
import { settleInstance } from '../settle.ts';
import { LONGEST_RECLAIM_MS, whileRemoving } from './being-removed.ts';

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
        if (current.status === 'DESTROYING')
          return whileRemoving(lease, now - current.updatedAt > LONGEST_RECLAIM_MS);
        return { step: 'again', afterMs: LONGEST_REST_MS, attempt: attempt - 1 };
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
