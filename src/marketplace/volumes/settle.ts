import type { Deps } from '../deps.ts';
import { type DeploymentRecord, isActive } from '../model/deployment-record.ts';
import { isUnsent } from '../model/intent.ts';
import type { Transaction } from '../model/store.ts';
import type { AttachmentRecord, VolumeIntent, VolumeRecord } from '../model/volume-record.ts';
import { awaitIntent, type IntendedCall } from '../providers/intended-call.ts';
import {
  type AskedVolume,
  detachIntent,
  endVolumeAction,
  intentAfter,
  isExclusive,
  ofAttachments,
} from './intents.ts';
import {
  type AttachmentSnapshot,
  isInTransit,
  readVolumeSnapshot,
  transactOnVolume,
  type VolumeSnapshot,
  writeVolume,
} from './snapshot.ts';

type UndoTransaction = Pick<Transaction, 'volumes' | 'deployments'>;

/**
 * Restores the state before an intent for which the provider has done nothing. Returns false if the intent must
 * continue. All rows are locked.
 */
export async function undoIntent(
  tx: UndoTransaction,
  snapshot: VolumeSnapshot & { record: { action: VolumeIntent } },
  at: number,
): Promise<boolean> {
  const { action } = snapshot.record;
  // An earlier call for the same change may have taken effect.
  if (isUnsent(action) && action.attempt > 0) return false;
  switch (action.kind) {
    case 'create':
      return endUnmade(tx, snapshot, { status: 'deleted', deletedAt: at });
    case 'attach':
      return undoAttach(tx, snapshot, action.deploymentId ?? '');
    case 'detach':
      return undoDetach(tx, snapshot, action.deploymentId ?? '');
    case 'resize':
    case 'delete':
      return undoInPlace(tx, snapshot, at);
  }
}

/** Ends a volume that the provider did not make, and removes its attachments. */
export async function endUnmade(
  tx: UndoTransaction,
  { record, attachments }: VolumeSnapshot,
  end: { status: 'deleted'; deletedAt: number } | { status: 'error' },
): Promise<boolean> {
  if (record.providerVolumeId !== null || record.status !== 'creating') return false;
  await writeVolume(tx, record, { ...end, action: null });
  await dropAttachments(tx, record, attachments);
  return true;
}

/** Removes an attachment that the provider does not have. */
export async function undoAttach(
  tx: UndoTransaction,
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
    ...(record.status !== 'creating' && { action: actionWith(record, left, deploymentId) }),
  });
  await dropAttachments(tx, record, dropped);
  return true;
}

/** Keeps the attachment. Returns false if the deployment has ended, because the volume must then still be detached. */
export async function undoDetach(
  tx: UndoTransaction,
  { record, attachments }: VolumeSnapshot,
  deploymentId: string,
): Promise<boolean> {
  const kept = attachments.find(({ deployment }) => deployment.id === deploymentId);
  if (kept === undefined || !isActive(kept.deployment)) return false;
  const others = attachments.filter((attachment) => attachment !== kept);
  await writeVolume(tx, record, { action: actionWith(record, others, deploymentId) });
  await writeAttachment(tx, record, kept.deployment, 'attached');
  return true;
}

/** The remaining intent when only these attachments are pending. An intent for `deploymentId` itself is over. */
function actionWith(
  record: VolumeRecord,
  attachments: readonly AttachmentSnapshot[],
  deploymentId: string,
): VolumeIntent | null {
  const left = intentAfter(record, ofAttachments, attachments, record.action?.since ?? 0);
  return left === null || left.deploymentId !== deploymentId ? left : detachIntent(record, left.since);
}

/** Withdraws a resize or a deletion. A creation or resize that the deletion had replaced continues. */
async function undoInPlace(
  tx: UndoTransaction,
  { record, attachments }: VolumeSnapshot & { record: { action: VolumeIntent } },
  at: number,
): Promise<boolean> {
  const { status, action } = record;
  if (status === 'deleting' || status === 'deleted') return false;
  const left = action.before ?? intentAfter(record, [action.kind], attachments, at);
  await writeVolume(tx, record, { action: left });
  return true;
}

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

/** The call of an intent, as errors name it. */
export function toCall({ providerId, volumeId, action: { kind } }: AskedVolume): IntendedCall {
  const what = kind === 'delete' ? 'deletion' : kind;
  return { providerId, what, thing: 'volume', details: { volumeId } };
}

/** Waits for the intent as {@link awaitIntent} does. */
export function awaitVolume(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  asked: AskedVolume,
  awaited: {
    isDone(snapshot: VolumeSnapshot): boolean;
    goesOn?(snapshot: VolumeSnapshot): boolean;
  },
): Promise<VolumeSnapshot> {
  return awaitIntent({ store, clock }, asked, toCall(asked), {
    ...awaited,
    read: async () => {
      const snapshot = await readVolumeSnapshot(store.read, asked.id);
      if (snapshot === null) throw new Error(`the volume ${asked.id} no longer exists`);
      return snapshot;
    },
    withdraw: () =>
      transactOnVolume(store, asked.id, async (tx, seen) => {
        const { action } = seen.record;
        if (action?.id !== asked.action.id || !isUnsent(action)) return { seen, isWithdrawn: false };
        const withdrawn = { ...seen, record: { ...seen.record, action } };
        return { seen, isWithdrawn: await undoIntent(tx, withdrawn, clock.now()) };
      }),
  });
}
