import type { Deps } from '../deps.ts';
import { type DeploymentRecord, isActive } from '../model/deployment-record.ts';
import { changeInProgress, hasTimedOut, isUnsent, newIntent, type Refusal } from '../model/intent.ts';
import type { MarketplaceOptions } from '../model/options.ts';
import type { Reader, Transaction } from '../model/store.ts';
import {
  type AttachmentRecord,
  toAttachment,
  type VolumeIntent,
  type VolumeRecord,
} from '../model/volume-record.ts';
import { awaitIntent, type IntendedCall } from '../providers/intended-call.ts';
import {
  type AttachmentSnapshot,
  currentOf,
  readVolumeSnapshot,
  transactOnVolume,
  type VolumeChange,
  type VolumeSnapshot,
  writeVolume,
} from './snapshot.ts';

/** Detaches a volume whose deployment has ended. It has no deadline. */
export function detachIntent(record: VolumeRecord, deploymentId: string, since: number): VolumeIntent {
  return { ...newIntent(record, { kind: 'detach', by: record.userId, since, until: null }), deploymentId };
}

/** Whether only the provider can end the intent: the call may have made, resized or removed the volume. */
export function isExclusive({ action, providerVolumeId }: VolumeRecord): boolean {
  if (action?.kind === 'create') return providerVolumeId === null && !isUnsent(action);
  return action !== null;
}

/** A timed-out change does not block another one, unless it is exclusive. @throws {ApiError} CHANGE_IN_PROGRESS */
export function assertIdle(
  record: VolumeRecord,
  attachments: readonly AttachmentRecord[],
  now: number,
  options: MarketplaceOptions,
): void {
  const { action } = record;
  if (action !== null && isExclusive(record)) throw changeInProgress(action.kind);
  for (const intent of [action, ...attachments.map((it) => it.intent)])
    if (intent !== null && !hasTimedOut(intent, now, options)) throw changeInProgress(intent.kind);
}

/**
 * Allows one change of a deployment at a time (M: 409, "Another change (volume change, earlier restart) is in flight").
 * @throws {ApiError} CHANGE_IN_PROGRESS
 */
export async function assertUnchanging(
  read: Pick<Reader, 'volumes'>,
  { id, action, startedAt, stoppedAt }: DeploymentRecord,
  now: number,
  options: MarketplaceOptions,
): Promise<void> {
  // The volumes of an ended deployment are detached, which is not why it cannot change.
  if (stoppedAt !== null) return;
  const attachments = await read.volumes.attachmentsOf({ deploymentId: id });
  for (const intent of [action, ...attachments.map((it) => it.intent)]) {
    if (intent === null) continue;
    // A volume of its launch. The provider usually attaches it, otherwise a call is sent once the instance runs.
    const isOfLaunch = intent.until === null && (startedAt === null || intent.since < startedAt);
    const since = isOfLaunch ? Math.max(intent.since, startedAt ?? 0) : intent.since;
    if (isOfLaunch && isUnsent(intent)) continue;
    if (!hasTimedOut({ since }, now, options)) throw changeInProgress(intent.kind);
  }
}

/** @throws {ApiError} CHANGE_IN_PROGRESS while the provider has not made the volume */
export function assertMade({ status }: Pick<VolumeRecord, 'status'>): void {
  if (status === 'creating') throw changeInProgress('create');
}

/** Writes an intent into a locked volume or its attachment. */
export async function putIntent(
  tx: Pick<Transaction, 'volumes'>,
  record: VolumeRecord,
  intent: VolumeIntent,
  change: VolumeChange = {},
): Promise<VolumeRecord> {
  const { deploymentId } = intent;
  if (deploymentId === undefined) return writeVolume(tx, record, { ...change, action: intent });
  await tx.volumes.putAttachment(toAttachment(record, deploymentId, intent));
  return writeVolume(tx, record, change);
}

/** A volume with the intent that a request has written. */
export interface AskedVolume {
  record: VolumeRecord;
  intent: VolumeIntent;
}

/** Writes the intent of a request and wakes the worker of the provider. */
export async function askVolume(
  tx: Pick<Transaction, 'volumes' | 'signals'>,
  record: VolumeRecord,
  wanted: Omit<VolumeIntent, 'id' | 'attempt' | 'sentAt' | 'answer'> & { attempt?: number },
  change: VolumeChange = {},
): Promise<AskedVolume> {
  const intent = { ...newIntent(record, wanted), ...wanted };
  const written = await putIntent(tx, record, intent, change);
  await tx.signals.wake(record.providerId, record.id);
  return { record: written, intent };
}

type SettleTransaction = Pick<Transaction, 'volumes' | 'deployments'>;

/**
 * Takes back an intent for which the provider has done nothing, so that only what was observed is wanted. Returns false if
 * the intent must continue. All rows are locked.
 */
export async function withdraw(
  tx: SettleTransaction,
  snapshot: VolumeSnapshot,
  { kind, deploymentId }: VolumeIntent,
  at: number,
  refusal: Refusal | null = snapshot.record.refusal,
): Promise<boolean> {
  const { record, attachments } = snapshot;
  if (kind === 'create') return endUnmade(tx, snapshot, { status: 'deleted', deletedAt: at, refusal });
  if (deploymentId === undefined) {
    if (record.status === 'deleting' || record.status === 'deleted') return false;
    await writeVolume(tx, record, { action: null, refusal });
    return true;
  }
  const attachment = attachments.find((it) => it.deploymentId === deploymentId);
  // A volume on an ended deployment must still be detached.
  if (attachment === undefined || (kind === 'detach' && !isActive(attachment.deployment))) return false;
  if (kind === 'attach') return removeAttachment(tx, snapshot, attachment, refusal);
  await writeVolume(tx, record, { refusal });
  await writeAttachment(tx, record, attachment.deployment, null);
  return true;
}

/** Removes an attachment that the provider does not have. All rows are locked. */
export async function removeAttachment(
  tx: SettleTransaction,
  { record, attachments }: VolumeSnapshot,
  { deployment }: AttachmentSnapshot,
  refusal: Refusal | null = record.refusal,
): Promise<true> {
  await writeVolume(tx, record, { status: statusWith(record, attachments.length - 1), refusal });
  await writeAttachment(tx, record, deployment, 'gone');
  return true;
}

/** The status of a volume with this number of attachments. */
function statusWith({ status }: VolumeRecord, attachments: number): VolumeRecord['status'] {
  if (status !== 'available' && status !== 'attached') return status;
  return attachments > 0 ? 'attached' : 'available';
}

/** Ends a volume that the provider did not make, and removes its attachments. Returns whether it has ended now. */
export async function endUnmade(
  tx: SettleTransaction,
  { record, attachments }: VolumeSnapshot,
  end: VolumeChange,
): Promise<boolean> {
  if (record.providerVolumeId !== null || record.status === 'deleted') return false;
  await writeVolume(tx, record, { ...end, action: null });
  for (const { deployment } of attachments) await writeAttachment(tx, record, deployment, 'gone');
  return true;
}

/**
 * M: States: "when an instance terminates, its volumes return to `available`". They do so at once if there is no
 * instance, otherwise once the provider has detached them. The deployment's row was read by id in this transaction.
 */
export async function releaseVolumes(tx: SettleTransaction, deploymentId: string, at: number): Promise<void> {
  const deployment = await tx.deployments.byId(deploymentId);
  const isAttachedAtProvider = deployment !== null && deployment.providerInstanceId !== null;
  const attachments = await tx.volumes.attachmentsOf({ deploymentId });
  for (const { volumeId, intent } of attachments.toSorted((a, b) => (a.volumeId < b.volumeId ? -1 : 1))) {
    const volume = await tx.volumes.byId(volumeId);
    if (volume === null) continue;
    const detach = intent?.kind === 'detach' ? intent : detachIntent(volume, deploymentId, at);
    if (isAttachedAtProvider) await tx.volumes.putAttachment(toAttachment(volume, deploymentId, detach));
    else await tx.volumes.removeAttachment(volumeId, deploymentId);
    const left = await tx.volumes.attachmentsOf({ volumeId });
    const lastDetachedAt = isAttachedAtProvider ? volume.lastDetachedAt : at;
    await writeVolume(tx, volume, { status: statusWith(volume, left.length), lastDetachedAt });
  }
}

/** Writes an attachment. The deployment gets a new revision, so that a poll that began before is not applied to it. */
export async function writeAttachment(
  tx: SettleTransaction,
  volume: Pick<VolumeRecord, 'id'>,
  deployment: DeploymentRecord,
  intent: VolumeIntent | null | 'gone',
): Promise<void> {
  if (intent === 'gone') await tx.volumes.removeAttachment(volume.id, deployment.id);
  else await tx.volumes.putAttachment(toAttachment(volume, deployment.id, intent));
  if (isActive(deployment)) await tx.deployments.update(deployment);
}

/** The call of an intent, as errors name it. */
export function toCall({ record: { providerId, volumeId }, intent: { kind } }: AskedVolume): IntendedCall {
  const what = kind === 'delete' ? 'deletion' : kind;
  return { providerId, what, thing: 'volume', details: { volumeId } };
}

/** Waits for the intent as {@link awaitIntent} does. */
export function awaitVolume(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  asked: AskedVolume,
  isDone: (snapshot: VolumeSnapshot) => boolean,
): Promise<VolumeSnapshot> {
  const { intent, record } = asked;
  const see = (snapshot: VolumeSnapshot) => {
    const { refusal } = snapshot.record;
    return { ...snapshot, action: currentOf(snapshot, intent), refusal };
  };
  const row = { id: record.id, action: intent };
  return awaitIntent<ReturnType<typeof see>>({ store, clock }, row, toCall(asked), {
    isDone,
    // Another request for the same change replaces the intent, and the change goes on.
    goesOn: ({ action }) => action?.kind === intent.kind,
    read: async () => see(await readVolumeSnapshot(store.read, record.id)),
    withdraw: () =>
      transactOnVolume(store, record.id, async (tx, snapshot) => {
        const seen = see(snapshot);
        const isOpen = seen.action?.id === intent.id && isUnsent(seen.action) && intent.attempt === 0;
        return { seen, isWithdrawn: isOpen && (await withdraw(tx, snapshot, intent, clock.now())) };
      }),
  });
}
