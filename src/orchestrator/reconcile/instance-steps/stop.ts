import type { InstanceRecord } from '../../instances/instance-record.ts';
import { transition } from '../../instances/transition.ts';
import type { ObservedMachine } from '../../ports/platform-driver.ts';
import type { Transaction } from '../../ports/store.ts';
import { afterStop } from '../attach-cycle.ts';
import { callStep, look } from '../call-platform.ts';
import type { ReconcileContext } from '../context.ts';
import { describeFailure, isFinal, retry } from '../retry.ts';
import { type Next, settleInstance } from '../settle.ts';
import type { Lease } from '../work.ts';
import { failInstance } from './fail.ts';
import { vanished } from './observe.ts';

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
  const found =
    step.outcome === 'failed' ? await look(context, () => context.driver.get(record.ownerRef)) : undefined;
  await settleInstance(context, lease, async (tx, current): Promise<Next> => {
    if (step.outcome === 'done') return stopped(context, tx, current);
    if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
    if (found?.answer === 'gone') return vanished(context, tx, current);
    if (found?.answer === 'observed' && isDown(found.value))
      return current.status === 'STOPPING' && found.value.power === 'failed'
        ? failInstance(
            context,
            tx,
            current,
            `The machine failed: ${found.value.detail ?? 'no detail given'}.`,
          )
        : stopped(context, tx, current);
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

function isDown({ power }: ObservedMachine): boolean {
  return power === 'stopped' || power === 'failed';
}

async function stopped(context: ReconcileContext, tx: Transaction, record: InstanceRecord): Promise<Next> {
  const now = context.clock.now();
  const current = record.status === 'STOPPING' ? await transition(tx, record, 'STOPPED', now) : record;
  if (current.spec.onStop === 'release' && !current.attachCycle) await tx.claims.release(current.id);
  for (const { volumeId } of await tx.volumes.attachmentsOfInstance(current.id))
    await tx.work.hasten(volumeId, now);
  return afterStop(context, tx, current);
}
