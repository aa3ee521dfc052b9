import { ProviderError } from '../../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import { type DeploymentRecord, isActive } from '../../model/deployment-record.ts';
import { logNames, type VolumeRecord } from '../../model/volume-record.ts';
import type { VolumeProvider } from '../../providers/volume-provider.ts';
import { actionAfter, beginVolumeAction, endVolumeAction, ofAttachments } from '../actions.ts';
import { isDecided, type VolumeDeps } from '../refusal.ts';
import { dropAttachments } from '../release.ts';
import {
  type AttachmentSnapshot,
  isAttachedAtProvider,
  transactOnVolume,
  type VolumeSnapshot,
  writeVolume,
} from '../snapshot.ts';

/**
 * Sends the attach and detach calls that attachments in transit still need. O: both calls may be repeated; an
 * orchestrator "may ignore" the volumes of a create, "and the client attaches … once the instance is ONLINE".
 */
export async function syncAttachments(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  { record, attachments }: VolumeSnapshot,
  observed: ProviderVolume,
): Promise<void> {
  if (observed.status === 'ATTACHING' || observed.status === 'DETACHING' || observed.status === 'CREATING')
    return;
  for (const attachment of attachments) {
    if (attachment.state === 'attaching')
      await syncAttach(deps, volumeProvider, record, attachment, observed);
    if (attachment.state === 'detaching')
      await syncDetach(deps, volumeProvider, record, attachment, observed);
  }
}

async function syncAttach(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  record: VolumeRecord,
  { deployment }: AttachmentSnapshot,
  observed: ProviderVolume,
): Promise<void> {
  if (deployment.status !== 'running' || isAttachedAtProvider(observed, deployment)) return;
  if (isOverdue(deps, record, deployment) || observed.status === 'ERROR')
    return giveUpAttach(deps, record, deployment);
  if (isBeingSent(deps, record, deployment)) return;
  if (deployment.action !== null && deployment.action.kind !== 'volume') return;
  if (deployment.action === null) await begin(deps, deployment);
  try {
    await sendAttachment(deps, 'attach', volumeProvider, record, deployment);
  } catch (error) {
    // An earlier call whose answer was lost may still take effect.
    if (!isDecided(error)) throw error;
    await giveUpAttach(deps, record, deployment);
  }
}

async function begin({ store, clock, options }: VolumeDeps, { id }: DeploymentRecord): Promise<void> {
  await store.transact(async (tx) => {
    const deployment = await tx.deployments.byId(id);
    if (deployment?.status === 'running' && deployment.action === null)
      await beginVolumeAction(tx, deployment, clock.now(), options);
  });
}

async function syncDetach(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  record: VolumeRecord,
  { deployment }: AttachmentSnapshot,
  observed: ProviderVolume,
): Promise<void> {
  if (!isAttachedAtProvider(observed, deployment)) return;
  // The instance is being deleted, which detaches its volumes.
  if (!isActive(deployment) && deployment.cleanup === 'wanted') return;
  if (isActive(deployment) && isOverdue(deps, record, deployment))
    return giveUpDetach(deps, record, deployment);
  if (isActive(deployment) && isBeingSent(deps, record, deployment)) return;
  try {
    await sendAttachment(deps, 'detach', volumeProvider, record, deployment);
  } catch (error) {
    const isGone = error instanceof ProviderError && error.problem === 'not_found' && !isActive(deployment);
    if (!isGone) throw error;
    // The instance is gone at the provider, so nothing is attached to it.
    await giveUpAttach(deps, record, deployment);
  }
}

/** @throws {ProviderError} */
export async function sendAttachment(
  { options }: Pick<VolumeDeps, 'options'>,
  what: 'attach' | 'detach',
  { provider: { client } }: VolumeProvider,
  { providerVolumeId }: VolumeRecord,
  { providerInstanceId }: DeploymentRecord,
): Promise<void> {
  if (providerVolumeId === null || providerInstanceId === null) return;
  const call = { timeoutMs: options.polling.callTimeoutMs };
  if (what === 'attach') await client.attachVolume(providerVolumeId, [providerInstanceId], call);
  else await client.detachVolume(providerVolumeId, [providerInstanceId], call);
}

/**
 * Whether the user's request may still be waiting for its own call; it undoes the attachment itself when that is
 * refused.
 */
function isBeingSent(
  { clock, options }: VolumeDeps,
  { action }: VolumeRecord,
  deployment: DeploymentRecord,
): boolean {
  // A request begins both actions in one transaction; a volume named at a launch has no request of its own.
  const isOfRequest = deployment.action?.kind === 'volume' && deployment.action.since === action?.since;
  return isOfRequest && clock.now() - action.since < options.polling.callTimeoutMs;
}

/** A volume that is named at a launch cannot be attached before the instance is running. */
function isOverdue(
  { clock, options }: VolumeDeps,
  { action }: VolumeRecord,
  { startedAt }: DeploymentRecord,
): boolean {
  const since = Math.max(action?.since ?? 0, startedAt ?? 0);
  return clock.now() - since >= options.polling.actionMs;
}

async function giveUpAttach(deps: VolumeDeps, record: VolumeRecord, { id: deploymentId }: DeploymentRecord) {
  await transactOnVolume(deps.store, record.id, (tx, snapshot) => undoAttach(tx, snapshot, deploymentId));
  deps.log.warn({ ...logNames(record), deployment: deploymentId }, 'an attachment of a volume was given up');
}

/** Removes an attachment that the provider does not have. */
export async function undoAttach(
  tx: Parameters<typeof dropAttachments>[0],
  { record, attachments }: VolumeSnapshot,
  deploymentId: string,
): Promise<true> {
  const isDropped = ({ deployment, state }: AttachmentSnapshot) =>
    deployment.id === deploymentId && state !== 'attached';
  const dropped = attachments.filter(isDropped);
  const left = attachments.filter((attachment) => !isDropped(attachment));
  if (dropped.length === 0) return true;
  await writeVolume(tx, record, {
    ...(left.length === 0 && record.status === 'attached' && { status: 'available' }),
    ...(record.status !== 'creating' && { action: actionWith(record, left) }),
  });
  await dropAttachments(tx, record, dropped);
  return true;
}

async function giveUpDetach(deps: VolumeDeps, record: VolumeRecord, { id: deploymentId }: DeploymentRecord) {
  const isKept = await transactOnVolume(deps.store, record.id, (tx, snapshot) =>
    undoDetach(tx, snapshot, deploymentId),
  );
  if (!isKept) return;
  deps.log.warn(
    { ...logNames(record), deployment: deploymentId },
    'a volume could not be detached in time: it stays attached',
  );
}

/**
 * Undoes a detach that the provider did not accept: the volume stays attached. Returns false, and does nothing, where
 * the deployment has ended meanwhile: its volumes still have to be detached.
 */
export async function undoDetach(
  tx: Parameters<typeof dropAttachments>[0],
  { record, attachments }: VolumeSnapshot,
  deploymentId: string,
): Promise<boolean> {
  const kept = attachments.find(({ deployment }) => deployment.id === deploymentId);
  if (kept === undefined || !isActive(kept.deployment)) return false;
  const others = attachments.filter((attachment) => attachment !== kept);
  await writeVolume(tx, record, { action: actionWith(record, others) });
  await tx.volumes.putAttachment({ volumeId: record.id, deploymentId, state: 'attached' });
  await endVolumeAction(tx, kept.deployment);
  return true;
}

/** The action that is left when only these attachments are pending. */
function actionWith(
  record: VolumeRecord,
  attachments: readonly AttachmentSnapshot[],
): VolumeRecord['action'] {
  return actionAfter(record, ofAttachments, attachments, record.action?.since ?? 0);
}
