import { ApiError } from '../../contract/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import { type Requester, recordedOrder } from '../model/destroy-order.ts';
import { getVolume, putVolumeWork } from '../model/rows.ts';
import type { Store } from '../model/store.ts';
import { transitionVolume } from './transition.ts';

/**
 * O: DELETE /volumes/{volumeId}. An attached volume is refused. Records that remain after a detach are force-detached.
 * Once the volume is proved gone, it is 404.
 *
 * @throws {ApiError} `not_found` or `volume_attached`
 */
export async function deleteVolume(
  { store, clock }: { store: Store; clock: Clock },
  accountId: string,
  id: string,
  { reason, by }: Requester = { reason: 'tenant', by: accountId },
): Promise<void> {
  await store.transact(async (tx) => {
    const volume = await getVolume(tx.volumes, accountId, id);
    if (volume.status === 'DELETING') return;
    const attachments = await tx.volumes.attachmentsOfVolume(id);
    const holders = attachments
      .filter(({ state }) => state !== 'detaching')
      .map(({ instanceId }) => instanceId);
    if (holders.length > 0)
      throw new ApiError('volume_attached', 'The volume is attached; detach it first.', {
        details: { attached_instance_ids: holders },
      });
    const destroyOrder = volume.destroyOrder ?? recordedOrder({ reason, by, at: clock.now() });
    await transitionVolume(tx, { ...volume, destroyOrder }, 'DELETING');
    await putVolumeWork(tx, id, 'destroy', clock.now());
  });
}
