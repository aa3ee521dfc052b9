import type { VolumeDriver } from '../../ports/platform-driver.ts';
import type { VolumeRecord } from '../../volumes/volume-record.ts';
import { endAttachCycle } from '../attach-cycle.ts';
import type { StepContext } from '../context.ts';
import { remove, unproved } from '../removal.ts';
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
  const removal = await remove(context, lease, volumes, record.ownerRef);
  await settleVolume(context, lease, async (tx, current): Promise<Next> => {
    const next = unproved(context, lease, current.ownerRef, removal, false);
    if (next !== undefined) return next;
    for (const { volumeId, instanceId } of await tx.volumes.attachmentsOfVolume(current.id)) {
      await tx.volumes.removeAttachment(volumeId, instanceId);
      await endAttachCycle(context, tx, instanceId);
    }
    if (current.status === 'DELETING')
      await tx.volumes.update({ ...current, deletedAt: context.clock.now() });
    return finish;
  });
}
