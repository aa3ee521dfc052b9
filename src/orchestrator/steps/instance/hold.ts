import { amend } from '../../instances/transition.ts';
import { recordedOrder } from '../../model/destroy-order.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { Lease } from '../../model/work.ts';
import { confirmMachine } from '../../platform/confirm-gone.ts';
import { mayAppearForMs } from '../../platform/visibility.ts';
import { readConsole } from '../console-tail.ts';
import type { StepContext } from '../context.ts';
import { isPastDeadline, LONGEST_REST_MS } from '../retry.ts';
import { settleInstance } from '../settle.ts';

/**
 * Keeps the machine and unit of an instance in ERROR for the operator until the deadline, or without one until a
 * request. The console is read at once, every hour, and at an operator's retry. The tenant's DELETE and
 * `releaseInstance` replace the hold with a destroy; at the deadline, the operator's policy orders it.
 */
export async function stepHold(context: StepContext, lease: Lease, record: InstanceRecord): Promise<void> {
  const { clock, alarms } = context;
  const observedAt = clock.now();
  const found = isPastDeadline(lease, observedAt) ? undefined : await confirmMachine(context, record);
  const isGone = found?.answer === 'gone';
  if (found !== undefined && !isGone) await readConsole(context, record);
  await settleInstance(context, lease, async (tx, current) => {
    const { deadlineAt } = lease;
    const now = clock.now();
    const hiddenMs = isGone ? mayAppearForMs(context, current.createOpenUntil, observedAt) : 0;
    if (isGone && hiddenMs === 0) return { step: current.destroyOrder === null ? 'release' : 'destroy' };
    if (isPastDeadline(lease, now)) {
      const order = recordedOrder({ reason: 'policy', by: alarms.server, at: now });
      if (current.destroyOrder === null) await amend(tx, current, now, { destroyOrder: order });
      return { step: 'destroy', because: 'failed_instances.hold_minutes are over' };
    }
    const restMs = Math.min((deadlineAt ?? Number.POSITIVE_INFINITY) - now, hiddenMs || LONGEST_REST_MS);
    return { step: 'again', afterMs: restMs, attempt: lease.attempt - 1 };
  });
}
