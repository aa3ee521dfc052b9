import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { assertNoAction, type DeploymentRecord } from '../model/deployment-record.ts';
import { type Intent, isUnsent, newIntent, withAttempt } from '../model/intent.ts';
import type { MarketplaceOptions } from '../model/options.ts';
import type { Transaction } from '../model/store.ts';
import type { AttachmentRecord, VolumeIntent, VolumeRecord } from '../model/volume-record.ts';
import { isInTransit, writeVolume } from './snapshot.ts';

type Kind = VolumeIntent['kind'];

/** Kinds of intents that end once no attachment is in transit. */
export const ofAttachments: readonly Kind[] = ['create', 'attach', 'detach'];

/**
 * The intent that is left when intents of the kinds `over` end. A resize ends with the new size, a deletion with its
 * proof. While an attachment is in transit, there is always an intent.
 */
export function intentAfter(
  record: Pick<VolumeRecord, 'action' | 'revision' | 'userId'>,
  over: readonly Kind[],
  left: readonly Pick<AttachmentRecord, 'state'>[],
  at: number,
): VolumeIntent | null {
  const { action } = record;
  if (action !== null && !over.includes(action.kind)) return action;
  if (!left.some(isInTransit)) return null;
  return action !== null && ofAttachments.includes(action.kind) ? action : detachIntent(record, at);
}

/** An intent without a deadline that settles all attachments in transit. */
export function detachIntent(
  record: Pick<VolumeRecord, 'action' | 'revision' | 'userId'>,
  at: number,
): VolumeIntent {
  const attempt = callsBefore(record);
  return newIntent(record, { kind: 'detach', by: record.userId, since: at, until: null, attempt });
}

/** How many earlier attachment calls may still take effect when a new intent replaces the current one. */
export function callsBefore({ action }: Pick<VolumeRecord, 'action'>): number {
  return action !== null && ofAttachments.includes(action.kind) ? action.attempt : 0;
}

const progressTexts: Readonly<Record<Kind, string>> = {
  create: 'The volume is being created.',
  attach: 'The volume is being attached.',
  detach: 'The volume is being detached.',
  resize: 'The volume is being resized.',
  delete: 'The volume is being deleted.',
};

/** Whether only the provider can end the intent: the call may have made, resized or removed the volume. */
export function isExclusive({ action, providerVolumeId }: VolumeRecord): boolean {
  if (action?.kind === 'create') return providerVolumeId === null && !isUnsent(action);
  return action?.kind === 'resize' || action?.kind === 'delete';
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
export function assertIdle(record: VolumeRecord, now: number, options: MarketplaceOptions): void {
  const { action } = record;
  if (action === null || (!isExclusive(record) && hasTimedOut(action, now, options))) return;
  throw new ApiError('CHANGE_IN_PROGRESS', `${progressTexts[action.kind]} Wait a moment and try again.`, {
    details: { action: action.kind },
  });
}

/** @throws {ApiError} CHANGE_IN_PROGRESS while the provider has not made the volume */
export function assertMade({ status }: Pick<VolumeRecord, 'status'>): void {
  if (status === 'creating')
    throw new ApiError('CHANGE_IN_PROGRESS', `${progressTexts.create} Wait a moment and try again.`);
}

/** Writes an intent into a locked volume and wakes its provider's worker. */
export async function writeVolumeIntent(
  tx: Pick<Transaction, 'volumes' | 'signals'>,
  record: VolumeRecord,
  wanted: Omit<VolumeIntent, 'id' | 'attempt' | 'sentAt' | 'answer'> & { attempt?: number },
  change: Partial<Pick<VolumeRecord, 'status'>> = {},
): Promise<AskedVolume> {
  const action = { ...newIntent(record, wanted), ...wanted };
  const written = await writeVolume(tx, record, { ...change, action });
  await tx.signals.wake(record.providerId, record.id);
  return { ...written, action };
}

/** A volume with the intent that was written into it. */
export type AskedVolume = VolumeRecord & { action: VolumeIntent };

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
