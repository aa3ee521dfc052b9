import type { VolumeDriver } from '../../ports/platform-driver.ts';
import type { Transaction } from '../../ports/store.ts';
import type { VolumeRecord } from '../../volumes/volume-record.ts';
import { endAttachCycle } from '../attach-cycle.ts';
import type { StepContext } from '../create-calls.ts';
import { findVolume } from '../find.ts';
import { remove, unproved, whatItShowed } from '../removal.ts';
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
  const removal = await remove(context, lease, {
    destroy: (cookie) => volumes.destroy(record.ownerRef, cookie),
    find: () => findVolume(context, volumes, record.ownerRef),
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
