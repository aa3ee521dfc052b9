import type { InstanceRecord } from '../../instances/instance-record.ts';
import { transition } from '../../instances/transition.ts';
import type { Transaction } from '../../ports/store.ts';
import { dropAttachments } from '../../volumes/inline-attachments.ts';
import { callStep, look } from '../call-platform.ts';
import type { ReconcileContext, StepContext } from '../context.ts';
import { describeFailure, retry } from '../retry.ts';
import { finish, type Next, settleInstance } from '../settle.ts';
import type { Lease } from '../work.ts';

/**
 * Removes the machine and all that belongs to it, and goes on until the platform shows that it is gone: there
 * is no giving up. DESTROYING then becomes DESTROYED; ERROR and OFFLINE stay as they are, cleaned.
 */
export async function stepDestroy(context: StepContext, lease: Lease, record: InstanceRecord): Promise<void> {
  const { driver, creates } = context;
  const step = await callStep(context, lease, () => driver.destroy(record.ownerRef, lease.cookie));
  const isClaimedGone = step.outcome === 'done' || (step.outcome === 'failed' && step.code === 'gone');
  const found = isClaimedGone ? await look(context, () => driver.get(record.ownerRef)) : undefined;
  await settleInstance(context, lease, async (tx, current): Promise<Next> => {
    if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
    if (found === undefined)
      return retry(
        context,
        lease,
        step.outcome === 'failed' ? describeFailure(step) : '',
        step.outcome === 'failed' ? step.retryAfterMs : undefined,
      );
    if (found.answer === 'unknown')
      return retry(
        context,
        lease,
        `the platform could not be asked whether the machine is gone: ${found.reason}`,
      );
    if (found.answer === 'observed')
      return retry(context, lease, 'the platform said that the machine is gone, and still has it');
    if (creates.isOut(current.ownerRef)) return retry(context, lease, 'a create has not come back yet');
    const waitMs = current.endpoint === null ? creates.mayTurnUpForMs(current.ownerRef) : 0;
    if (waitMs > 0) return { step: 'again', afterMs: waitMs, problem: 'a create may still turn up' };
    creates.forget(current.ownerRef);
    return destroyed(context, tx, current);
  });
}

async function destroyed(
  { clock, log }: ReconcileContext,
  tx: Transaction,
  record: InstanceRecord,
): Promise<Next> {
  const now = clock.now();
  await tx.claims.release(record.id);
  for (const attachment of await tx.volumes.attachmentsOfInstance(record.id)) {
    const volume = await tx.volumes.byId(attachment.volumeId);
    if (volume !== null) await dropAttachments(tx, volume, [attachment], now);
  }
  const spec = { ...record.spec, cloudInit: undefined };
  if (record.status === 'DESTROYING') await transition(tx, record, 'DESTROYED', now, { spec });
  log.info({ instance: record.id, status: record.status }, 'the machine is proved gone');
  return finish;
}
