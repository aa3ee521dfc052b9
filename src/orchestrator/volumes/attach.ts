import type { Clock } from '../../ports/clock.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { VolumeRecord } from '../model/records.ts';
import { getInstance, getVolume, lockInstances } from '../model/rows.ts';
import type { Store } from '../model/store.ts';
import { assertAttachable, dropAttachments, workOnAttachments } from './attachments.ts';
import { updateAttachmentStatus } from './transition.ts';

/**
 * O: POST /volumes/{volumeId}/attach. Attaches to all of the instances or to none. Attaching to an already attached
 * instance is a success.
 *
 * @throws {ApiError} `not_found` (the volume, or any of the instances), `invalid_state`, `volume_attached`
 */
export async function attachVolume(
  { store, catalog, clock }: { store: Store; catalog: Catalog; clock: Clock },
  accountId: string,
  id: string,
  instanceIds: readonly string[],
): Promise<VolumeRecord> {
  return store.transact(async (tx) => {
    await lockInstances(tx, instanceIds);
    const volume = await getVolume(tx.volumes, accountId, id);
    const existing = await tx.volumes.attachmentsOfVolume(id);
    const wanted = new Set(
      existing.filter(({ state }) => state !== 'detaching').map(({ instanceId }) => instanceId),
    );
    const asked = [];
    for (const instanceId of new Set(instanceIds))
      asked.push(await getInstance(tx.instances, accountId, instanceId));
    const added = asked.filter((instance) => !wanted.has(instance.id));
    if (added.length === 0) return volume;
    assertAttachable(catalog, volume, existing, added);
    const now = clock.now();
    for (const { id: instanceId } of added) {
      await tx.volumes.putAttachment({ volumeId: id, instanceId, state: 'attaching' });
      await tx.history.asked({ instanceId, at: now, what: `attach ${id}` });
    }
    await workOnAttachments(tx, volume, now);
    return updateAttachmentStatus(tx, volume);
  });
}

/**
 * O: POST /volumes/{volumeId}/detach. Without `instanceIds`, detaches from all instances. Detaching an instance without
 * the volume is a success. The volume reads as attached until the platform's attachment record is gone.
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
    const now = clock.now();
    for (const { instanceId } of removed)
      await tx.history.asked({ instanceId, at: now, what: `detach ${id}` });
    return dropAttachments(tx, volume, removed, now);
  });
}
