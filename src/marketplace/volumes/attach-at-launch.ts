import { ApiError } from '../contract/errors.ts';
import type { Transaction } from '../ports/store.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import type { VolumeRecord } from '../records/volume-record.ts';
import { writeVolume } from './write.ts';

/**
 * Puts the volumes that were planned on a deployment that is being made: nobody else gets them from here on.
 *
 * @throws {ApiError} CHANGE_IN_PROGRESS where one of them has changed since it was planned
 */
export async function attachAtLaunch(
  tx: Pick<Transaction, 'volumes'>,
  { id: deploymentId }: Pick<DeploymentRecord, 'id'>,
  volumes: readonly VolumeRecord[],
  at: number,
): Promise<void> {
  for (const planned of volumes.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const volume = await tx.volumes.byId(planned.id);
    if (volume?.revision !== planned.revision)
      throw new ApiError('CHANGE_IN_PROGRESS', `The volume ${planned.volumeId} has just changed; try again.`);
    await writeVolume(tx, volume, { status: 'attached', action: { kind: 'attach', since: at } });
    await tx.volumes.putAttachment({ volumeId: volume.id, deploymentId, state: 'attaching' });
  }
}
