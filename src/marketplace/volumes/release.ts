import { type DeploymentRecord, isActive } from '../model/deployment-record.ts';
import type { Transaction } from '../model/store.ts';
import type { AttachmentRecord, VolumeRecord } from '../model/volume-record.ts';
import { detachIntent, endVolumeAction, isExclusive } from './intents.ts';
import { type AttachmentSnapshot, isInTransit, writeVolume } from './snapshot.ts';

/**
 * M: States: "when an instance terminates, its volumes return to `available`". They do so at once if there is no
 * instance, otherwise once the provider has detached them. The deployment's row was read by id in this transaction.
 */
export async function releaseVolumes(
  tx: Pick<Transaction, 'volumes' | 'deployments'>,
  deploymentId: string,
  at: number,
): Promise<void> {
  const deployment = await tx.deployments.byId(deploymentId);
  const isAttachedAtProvider = deployment !== null && deployment.providerInstanceId !== null;
  const attachments = await tx.volumes.attachmentsOf({ deploymentId });
  for (const attachment of attachments.toSorted((a, b) => (a.volumeId < b.volumeId ? -1 : 1)))
    await release(tx, attachment, isAttachedAtProvider, at);
}

async function release(
  tx: Pick<Transaction, 'volumes'>,
  { volumeId, deploymentId }: AttachmentRecord,
  isAttachedAtProvider: boolean,
  at: number,
): Promise<void> {
  const volume = await tx.volumes.byId(volumeId);
  if (volume === null) return;
  if (isAttachedAtProvider) await tx.volumes.putAttachment({ volumeId, deploymentId, state: 'detaching' });
  else await tx.volumes.removeAttachment(volumeId, deploymentId);
  const left = await tx.volumes.attachmentsOf({ volumeId });
  const isUsable = volume.status === 'available' || volume.status === 'attached';
  // Earlier intents are over, unless only the provider can end them.
  const pending = left.some(isInTransit) ? detachIntent(volume, at) : null;
  const action = isExclusive(volume) ? volume.action : pending;
  await writeVolume(tx, volume, {
    ...(isUsable && { status: left.length > 0 ? 'attached' : 'available' }),
    ...(isUsable && !isAttachedAtProvider && { lastDetachedAt: at }),
    // A volume in `error` is synced until its attachments are gone.
    ...((isUsable || volume.status === 'error') && { action }),
  });
}

/** Removes attachments that the provider does not have. */
export async function dropAttachments(
  tx: Pick<Transaction, 'volumes' | 'deployments'>,
  volume: VolumeRecord,
  attachments: readonly AttachmentSnapshot[],
): Promise<void> {
  for (const { deployment } of attachments) await writeAttachment(tx, volume, deployment, 'gone');
}

/** Writes an attachment. Once no volume is in transit, the deployment accepts other changes again. */
export async function writeAttachment(
  tx: Pick<Transaction, 'volumes' | 'deployments'>,
  { id: volumeId }: Pick<VolumeRecord, 'id'>,
  deployment: DeploymentRecord,
  after: AttachmentRecord['state'] | 'gone',
): Promise<void> {
  if (after === 'gone') await tx.volumes.removeAttachment(volumeId, deployment.id);
  else await tx.volumes.putAttachment({ volumeId, deploymentId: deployment.id, state: after });
  if (isActive(deployment)) await endVolumeAction(tx, deployment);
}
