import { isActive } from '../model/deployment-record.ts';
import { isUnsent } from '../model/intent.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeIntent, VolumeRecord } from '../model/volume-record.ts';
import { detachIntent, intentAfter, ofAttachments } from './intents.ts';
import { dropAttachments, writeAttachment } from './release.ts';
import { type AttachmentSnapshot, type VolumeSnapshot, writeVolume } from './snapshot.ts';

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
