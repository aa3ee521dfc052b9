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
  isInTransit,
  transactOnVolume,
  type VolumeSnapshot,
  writeVolume,
} from '../snapshot.ts';

/**
 * Asks the provider for what attachments on their way still lack. O: both calls may be repeated; an orchestrator "may
 * ignore" the volumes of a create, "and the client attaches … once the instance is ONLINE".
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
    await sendAttach(deps, volumeProvider, record, deployment);
  } catch (error) {
    // An earlier call of which nobody has the answer may still be worked off.
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
  // The instance is being deleted, and gives its volumes back.
  if (!isActive(deployment) && deployment.cleanup === 'wanted') return;
  if (isActive(deployment) && isOverdue(deps, record, deployment))
    return giveUpDetach(deps, record, deployment);
  if (isActive(deployment) && isBeingSent(deps, record, deployment)) return;
  try {
    await sendDetach(deps, volumeProvider, record, deployment);
  } catch (error) {
    const isGone = error instanceof ProviderError && error.problem === 'not_found' && !isActive(deployment);
    if (!isGone) throw error;
    // The provider knows no such instance any more, so nothing is attached to it.
    await giveUpAttach(deps, record, deployment);
  }
}

/** @throws {ProviderError} */
export async function sendAttach(
  { options }: Pick<VolumeDeps, 'options'>,
  { provider }: VolumeProvider,
  { providerVolumeId }: VolumeRecord,
  { providerInstanceId }: DeploymentRecord,
): Promise<void> {
  if (providerVolumeId === null || providerInstanceId === null) return;
  await provider.client.attachVolume(providerVolumeId, [providerInstanceId], {
    timeoutMs: options.polling.callTimeoutMs,
  });
}

/** @throws {ProviderError} */
export async function sendDetach(
  { options }: Pick<VolumeDeps, 'options'>,
  { provider }: VolumeProvider,
  { providerVolumeId }: VolumeRecord,
  { providerInstanceId }: DeploymentRecord,
): Promise<void> {
  if (providerVolumeId === null || providerInstanceId === null) return;
  await provider.client.detachVolume(providerVolumeId, [providerInstanceId], {
    timeoutMs: options.polling.callTimeoutMs,
  });
}

/** Whether the request that asked for it may still wait for the answer to its call: a refusal to that undoes it. */
function isBeingSent(
  { clock, options }: VolumeDeps,
  { action }: VolumeRecord,
  deployment: DeploymentRecord,
): boolean {
  // A request begins both in one transaction; what is named at a launch has no request of its own.
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

/** The provider does not have an attachment that was on its way: the volume is as it is without it. */
export async function undoAttach(
  tx: Parameters<typeof dropAttachments>[0],
  { record, attachments }: VolumeSnapshot,
  deploymentId: string,
): Promise<void> {
  const isDropped = ({ deployment, state }: AttachmentSnapshot) =>
    deployment.id === deploymentId && state !== 'attached';
  const dropped = attachments.filter(isDropped);
  const left = attachments.filter((attachment) => !isDropped(attachment));
  if (dropped.length === 0) return;
  await writeVolume(tx, record, {
    ...(left.length === 0 && record.status === 'attached' && { status: 'available' }),
    ...(record.status !== 'creating' && { action: actionWith(record, left) }),
  });
  await dropAttachments(tx, record, dropped);
}

async function giveUpDetach(deps: VolumeDeps, record: VolumeRecord, { id: deploymentId }: DeploymentRecord) {
  const isKept = await transactOnVolume(deps.store, record.id, (tx, snapshot) =>
    undoDetach(tx, snapshot, deploymentId),
  );
  if (!isKept) return;
  deps.log.warn(
    { ...logNames(record), deployment: deploymentId },
    'a volume is still attached although it was to be detached',
  );
}

/**
 * The provider has not taken the detach: the volume stays attached, and the answer is true. Not where the deployment
 * has ended meanwhile: its volumes are still to be detached.
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

/** What is under way where nothing is but what these attachments lack. */
function actionWith(
  record: VolumeRecord,
  attachments: readonly AttachmentSnapshot[],
): VolumeRecord['action'] {
  const [at, isAnyInTransit] = [record.action?.since ?? 0, attachments.some(isInTransit)];
  return actionAfter(record, { over: ofAttachments, isInTransit: isAnyInTransit, at });
}
