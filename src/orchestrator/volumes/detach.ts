import type { Clock } from '../../ports/clock.ts';
import { getVolume } from '../model/own-rows.ts';
import type { Store } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { dropAttachments } from './inline-attachments.ts';

/**
 * O: POST /volumes/{volumeId}/detach. Without `instanceIds` from all instances; detaching what is not attached
 * is success. The volume reads as attached until the platform's attachment record is gone.
 *
 * @throws {ApiError} `not_found`
 */
export async function detachVolume(
  { store, clock }: { store: Store; clock: Clock },
  accountId: string,
  id: string,
  instanceIds?: readonly string[],
): Promise<VolumeRecord> {
  return store.transact(async (tx) => {
    const volume = await getVolume(tx.volumes, accountId, id);
    const attachments = await tx.volumes.attachmentsOfVolume(id);
    const removed = attachments.filter(
      ({ instanceId, state }) => state !== 'detaching' && (instanceIds?.includes(instanceId) ?? true),
    );
    if (removed.length === 0) return volume;
    return dropAttachments(tx, volume, removed, clock.now());
  });
}
