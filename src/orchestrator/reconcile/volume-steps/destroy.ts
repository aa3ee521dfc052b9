import type { VolumeDriver } from '../../ports/platform-driver.ts';
import type { VolumeRecord } from '../../volumes/volume-record.ts';
import { endAttachCycle } from '../attach-cycle.ts';
import { callStep, look } from '../call-platform.ts';
import type { StepContext } from '../context.ts';
import { describeFailure, retry } from '../retry.ts';
import { finish, type Next, settleVolume } from '../settle.ts';
import type { Lease } from '../work.ts';

/**
 * DELETING, until the platform shows that the volume is gone. Lingering attachment records go with it. ERROR stays
 * as it is, cleaned.
 */
export async function stepDestroyVolume(
  context: StepContext,
  volumes: VolumeDriver,
  lease: Lease,
  record: VolumeRecord,
): Promise<void> {
  const step = await callStep(context, lease, () => volumes.destroy(record.ownerRef, lease.cookie));
  const isClaimedGone = step.outcome === 'done' || (step.outcome === 'failed' && step.code === 'gone');
  const found = isClaimedGone ? await look(context, () => volumes.get(record.ownerRef)) : undefined;
  await settleVolume(context, lease, async (tx, current): Promise<Next> => {
    if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
    if (step.outcome === 'failed' && !isClaimedGone)
      return retry(context, lease, describeFailure(step), step.retryAfterMs);
    if (found?.answer !== 'gone')
      return retry(context, lease, 'the platform has not shown that the volume is gone');
    if (context.creates.isOut(current.ownerRef))
      return retry(context, lease, 'a create has not come back yet');
    const waitMs = context.creates.mayTurnUpForMs(current.ownerRef);
    if (waitMs > 0) return { step: 'again', afterMs: waitMs, problem: 'a create may still turn up' };
    context.creates.forget(current.ownerRef);
    for (const { volumeId, instanceId } of await tx.volumes.attachmentsOfVolume(current.id)) {
      await tx.volumes.removeAttachment(volumeId, instanceId);
      await endAttachCycle(context, tx, instanceId);
    }
    if (current.status === 'DELETING')
      await tx.volumes.update({ ...current, deletedAt: context.clock.now() });
    return finish;
  });
}
