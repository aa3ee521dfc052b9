import type { DeploymentRecord } from '../model/deployment-record.ts';
import { changeInProgress, hasTimedOut, isUnsent, newIntent } from '../model/intent.ts';
import type { MarketplaceOptions } from '../model/options.ts';
import type { Reader, Transaction } from '../model/store.ts';
import {
  type AttachmentRecord,
  toAttachment,
  type VolumeIntent,
  type VolumeRecord,
} from '../model/volume-record.ts';
import { type VolumeChange, writeVolume } from './snapshot.ts';

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
  { id, action, startedAt }: DeploymentRecord,
  now: number,
  options: MarketplaceOptions,
): Promise<void> {
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
