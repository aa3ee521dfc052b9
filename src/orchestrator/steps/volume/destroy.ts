import type { VolumeDriver } from '../../model/platform-driver.ts';
import type { Transaction } from '../../model/store.ts';
import type { VolumeRecord } from '../../model/volume-record.ts';
import type { Lease } from '../../model/work.ts';
import { confirmVolume } from '../../platform/confirm-gone.ts';
import type { StepContext } from '../context.ts';
import { endAttachCycle } from '../instance/attach-cycle.ts';
import { remove, unproved, whatItShowed } from '../removal.ts';
import { finish, type Next, settleVolume } from '../settle.ts';

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
  const removal = await remove(context, lease, {
    destroy: (cookie) => volumes.destroy(record.ownerRef, cookie),
    find: () => confirmVolume(context, volumes, record.ownerRef),
  });
  const attachments = await context.store.read.volumes.attachmentsOfVolume(record.id);
  // None is added while it is DELETING or ERROR.
  const instanceIds = attachments.map(({ instanceId }) => instanceId);
  const settle = async (tx: Transaction, current: VolumeRecord): Promise<Next> => {
    const next = unproved(context, lease, current, removal);
    if (next !== undefined) return next;
    for (const { volumeId, instanceId } of await tx.volumes.attachmentsOfVolume(current.id)) {
      await tx.volumes.removeAttachment(volumeId, instanceId);
      await endAttachCycle(context, tx, instanceId);
    }
    await tx.storageClaims.release(current.id);
    if (current.status === 'DELETING' && current.deletedAt === null)
      await tx.volumes.update({ ...current, deletedAt: context.clock.now() });
    return finish;
  };
  await settleVolume(context, lease, settle, { instanceIds, learnt: whatItShowed(removal) });
}
