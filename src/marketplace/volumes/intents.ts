import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { assertNoAction, type DeploymentRecord } from '../model/deployment-record.ts';
import { type Intent, isUnsent, newIntent, withAttempt } from '../model/intent.ts';
import type { MarketplaceOptions } from '../model/options.ts';
import type { Transaction } from '../model/store.ts';
import {
  type AttachmentRecord,
  toAttachment,
  type VolumeIntent,
  type VolumeRecord,
} from '../model/volume-record.ts';
import { isInTransit, type VolumeChange, writeVolume } from './snapshot.ts';

/** Detaches a volume whose deployment has ended. It has no deadline. */
export function detachIntent(record: VolumeRecord, deploymentId: string, since: number): VolumeIntent {
  return { ...newIntent(record, { kind: 'detach', by: record.userId, since, until: null }), deploymentId };
}

const progressTexts: Readonly<Record<VolumeIntent['kind'], string>> = {
  create: 'The volume is being created.',
  attach: 'The volume is being attached.',
  detach: 'The volume is being detached.',
  resize: 'The volume is being resized.',
  delete: 'The volume is being deleted.',
};

/** Whether only the provider can end the intent: the call may have made, resized or removed the volume. */
export function isExclusive({ action, providerVolumeId }: VolumeRecord): boolean {
  if (action?.kind === 'create') return providerVolumeId === null && !isUnsent(action);
  return action !== null;
}

/** Whether the intent has reached the longest duration of a change. */
export function hasTimedOut(
  { since }: Pick<Intent, 'since'>,
  now: number,
  { polling }: MarketplaceOptions,
): boolean {
  return now - since >= polling.actionMs;
}

/** A timed-out change does not block another one, unless it is exclusive. @throws {ApiError} CHANGE_IN_PROGRESS */
export function assertIdle(
  record: VolumeRecord,
  attachments: readonly AttachmentRecord[],
  now: number,
  options: MarketplaceOptions,
): void {
  const open = [record.action, ...attachments.map(({ intent }) => intent)];
  for (const intent of open) {
    const isOver = intent === null || hasTimedOut(intent, now, options);
    if (isOver && !(intent !== null && intent === record.action && isExclusive(record))) continue;
    const kind = intent?.kind ?? 'create';
    throw new ApiError('CHANGE_IN_PROGRESS', `${progressTexts[kind]} Wait a moment and try again.`, {
      details: { action: kind },
    });
  }
}

/** @throws {ApiError} CHANGE_IN_PROGRESS while the provider has not made the volume */
export function assertMade({ status }: Pick<VolumeRecord, 'status'>): void {
  if (status === 'creating')
    throw new ApiError('CHANGE_IN_PROGRESS', `${progressTexts.create} Wait a moment and try again.`);
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

/**
 * Blocks other changes of the deployment. A restart for this change is then not mistaken for a stop. `isSent` means
 * that the call follows at once.
 * @throws {ApiError} CHANGE_IN_PROGRESS
 */
export async function beginVolumeAction(
  tx: Pick<Transaction, 'deployments'>,
  deployment: DeploymentRecord,
  { by, now, isSent = false }: { by: string; now: number; isSent?: boolean },
  options: Deps['options'],
): Promise<void> {
  assertNoAction(deployment, now, options);
  const action = newIntent(deployment, { kind: 'volume', by, since: now, until: null });
  await tx.deployments.update({ ...deployment, action: isSent ? withAttempt(action, now) : action });
}

/** Ends the deployment's volume change once none of its volumes is in transit. */
export async function endVolumeAction(
  tx: Pick<Transaction, 'deployments' | 'volumes'>,
  deployment: DeploymentRecord,
): Promise<void> {
  if (deployment.action?.kind !== 'volume') return;
  const attachments = await tx.volumes.attachmentsOf({ deploymentId: deployment.id });
  if (!attachments.some(isInTransit)) await tx.deployments.update({ ...deployment, action: null });
}
