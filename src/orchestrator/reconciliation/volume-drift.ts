import type { ObservedVolume } from '../model/platform-driver.ts';
import { type VolumeRecord, volumeLogNames } from '../model/records.ts';
import { lockInstances } from '../model/rows.ts';
import type { Reader } from '../model/store.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { workOnAttachments } from '../volumes/attachments.ts';
import { claimActualSize, withSize } from '../volumes/storage.ts';
import { updateAttachmentStatus } from '../volumes/transition.ts';

// A call that reaches the platform long after its caller gave it up can attach or grow a volume after the end of its
// work.

/** A key that is equal if two listings show the volume with the same size and attachments. */
export function toStateKey({ sizeGb, attachedTo }: ObservedVolume): string {
  return [sizeGb, ...[...attachedTo].sort()].join(' ');
}

/** `open`: it has open work. `more`: on the platform it is larger, or attached to more instances, than recorded. */
export async function compareVolume(
  { store: { read } }: Pick<ReconcileContext, 'store'>,
  row: VolumeRecord,
  volume: ObservedVolume,
): Promise<'open' | 'more' | 'as-recorded'> {
  if (!isSettled(row) || (await read.work.of(row.id)) !== null) return 'open';
  const isMore = withSize(row, volume) !== row || (await unrecordedInstances(read, row, volume)).length > 0;
  return isMore ? 'more' : 'as-recorded';
}

/**
 * Records and claims the size on the platform, even beyond the capacity, and detaches instances without a recorded
 * attachment.
 */
export async function reconcileDrift(
  { store, clock, log }: Pick<ReconcileContext, 'store' | 'clock' | 'log'>,
  row: VolumeRecord,
  volume: ObservedVolume,
): Promise<void> {
  const holders = await unrecordedInstances(store.read, row, volume);
  await store.transact(async (tx) => {
    await lockInstances(tx, holders);
    const current = await tx.volumes.byId(row.id);
    if (current === null || !isSettled(current) || (await tx.work.of(row.id)) !== null) return;
    const grown = withSize(current, volume);
    if (grown !== current) {
      await tx.volumes.update(grown);
      await claimActualSize(tx, grown);
      const { sizeGb } = grown;
      log.warn(
        { ...volumeLogNames(row), sizeGb },
        'the platform has enlarged a volume after the resize was given up',
      );
    }
    const recorded = await tx.volumes.attachmentsOfVolume(row.id);
    const unrecorded = holders.filter((holder) => !recorded.some(({ instanceId }) => instanceId === holder));
    for (const instance of unrecorded) {
      await tx.volumes.putAttachment({ volumeId: row.id, instanceId: instance, state: 'detaching' });
      log.warn(
        { ...volumeLogNames(row), instance },
        'the platform has attached a volume after the attach was given up: it is detached',
      );
    }
    if (unrecorded.length > 0)
      await workOnAttachments(tx, await updateAttachmentStatus(tx, grown), clock.now());
  });
}

function isSettled({ status, deletedAt }: VolumeRecord): boolean {
  return deletedAt === null && (status === 'AVAILABLE' || status === 'ATTACHED');
}

/** Instances that have the volume on the platform without a recorded attachment. */
async function unrecordedInstances(
  read: Reader,
  { id }: VolumeRecord,
  { attachedTo }: ObservedVolume,
): Promise<string[]> {
  const recorded = await read.volumes.attachmentsOfVolume(id);
  const rows = await Promise.all(attachedTo.map((ref) => read.instances.byOwnerRef(ref)));
  return rows.flatMap((row) =>
    row === null || recorded.some(({ instanceId }) => instanceId === row.id) ? [] : [row.id],
  );
}
