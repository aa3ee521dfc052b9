import type { InstanceRecord } from '../../instances/instance-record.ts';
import { transition } from '../../instances/transition.ts';
import type { Transaction } from '../../ports/store.ts';
import { afterStop } from '../attach-cycle.ts';
import { callStep } from '../call-platform.ts';
import type { ReconcileContext } from '../context.ts';
import { describeFailure, isFinal, retry } from '../retry.ts';
import { type Next, settleInstance } from '../settle.ts';
import type { Lease } from '../work.ts';
import { failInstance } from './fail.ts';

/**
 * STOPPING → STOPPED, disk preserved; the capacity is given back where the offer says so. On an instance that
 * is STOPPED already it takes a failed start back.
 */
export async function stepStop(
  context: ReconcileContext,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const step = await callStep(context, lease, () => context.driver.stop(record.ownerRef, lease.cookie));
  await settleInstance(context, lease, async (tx, current): Promise<Next> => {
    if (step.outcome === 'done') return stopped(context, tx, current);
    if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
    if (step.code === 'gone') return { step: 'observe' };
    if (isFinal(step) && current.status === 'STOPPING')
      return failInstance(
        context,
        tx,
        current,
        `The instance could not be stopped (${describeFailure(step)}).`,
      );
    return retry(context, lease, describeFailure(step), step.retryAfterMs);
  });
}

async function stopped(context: ReconcileContext, tx: Transaction, record: InstanceRecord): Promise<Next> {
  const now = context.clock.now();
  const current = record.status === 'STOPPING' ? await transition(tx, record, 'STOPPED', now) : record;
  if (current.spec.onStop === 'release' && !current.attachCycle) await tx.claims.release(current.id);
  for (const { volumeId } of await tx.volumes.attachmentsOfInstance(current.id))
    await tx.work.hasten(volumeId, now);
  return afterStop(context, tx, current);
}
