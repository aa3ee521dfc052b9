import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { assertNoAction, type DeploymentRecord } from '../model/deployment-record.ts';
import { type Intent, isUnsent, newIntent } from '../model/intent.ts';
import type { MarketplaceOptions } from '../model/options.ts';
import type { Transaction } from '../model/store.ts';
import type { AttachmentRecord, VolumeIntent, VolumeRecord } from '../model/volume-record.ts';
import { isInTransit, writeVolume } from './snapshot.ts';

type Kind = VolumeIntent['kind'];

/** The intents that end once no attachment is in transit. */
export const ofAttachments: readonly Kind[] = ['create', 'attach', 'detach'];

/**
 * The intent of a volume after those of the kinds `over` have ended, with the attachments that are left. One never ends
 * another: a resize ends when the provider shows the size, a deletion by proof. While an attachment is in transit there
 * is an intent.
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

/** All attachments in transit are settled, however long that takes. */
export function detachIntent(
  record: Pick<VolumeRecord, 'action' | 'revision' | 'userId'>,
  at: number,
): VolumeIntent {
  return instead(record, newIntent(record, { kind: 'detach', by: record.userId, since: at, until: null }));
}

/** The intent in the place of that of the record, whose calls may yet have an effect on attachments that are left. */
export function instead({ action }: Pick<VolumeRecord, 'action'>, intent: VolumeIntent): VolumeIntent {
  const mayFollow = action !== null && ofAttachments.includes(action.kind);
  const isRepeated = mayFollow && (!isUnsent(action) || action.isRepeated === true);
  return isRepeated ? { ...intent, isRepeated } : intent;
}

const progressTexts: Readonly<Record<Kind, string>> = {
  create: 'The volume is being created.',
  attach: 'The volume is being attached.',
  detach: 'The volume is being detached.',
  resize: 'The volume is being resized.',
  delete: 'The volume is being deleted.',
};

/** Whether only the provider can end it: a resize may have taken effect, and a deleted volume may be gone. */
export function isExclusive({ action }: Pick<VolumeRecord, 'action'>): boolean {
  return action?.kind === 'resize' || action?.kind === 'delete';
}

/** Whether it has lasted as long as any may. */
export function hasTimedOut(
  { since }: Pick<Intent, 'since'>,
  now: number,
  { polling }: MarketplaceOptions,
): boolean {
  return now - since >= polling.actionMs;
}

/**
 * Allows one change of a volume at a time. One that has timed out blocks no other, unless it is exclusive.
 *
 * @throws {ApiError} CHANGE_IN_PROGRESS
 */
export function assertIdle(record: VolumeRecord, now: number, options: MarketplaceOptions): void {
  const { action } = record;
  if (action === null || (!isExclusive(record) && hasTimedOut(action, now, options))) return;
  throw new ApiError('CHANGE_IN_PROGRESS', `${progressTexts[action.kind]} Wait a moment and try again.`, {
    details: { action: action.kind },
  });
}

/**
 * Refuses to attach or detach a volume that the provider has not made yet.
 *
 * @throws {ApiError} CHANGE_IN_PROGRESS
 */
export function assertMade({ status }: Pick<VolumeRecord, 'status'>): void {
  if (status === 'creating')
    throw new ApiError('CHANGE_IN_PROGRESS', `${progressTexts.create} Wait a moment and try again.`);
}

/** Whether the provider may have been asked to make the volume. */
export function isCreateSent({ action }: Pick<VolumeRecord, 'action'>): boolean {
  const create = action?.kind === 'create' ? action : action?.before;
  return create?.kind === 'create' && !isUnsent(create);
}

/** Writes an intent into a volume that is locked, and wakes the worker of its provider. */
export async function writeVolumeIntent(
  tx: Pick<Transaction, 'volumes' | 'signals'>,
  record: VolumeRecord,
  wanted: Omit<VolumeIntent, 'id' | 'attempt' | 'sentAt' | 'answer'>,
  change: Partial<Pick<VolumeRecord, 'status'>> = {},
): Promise<AskedVolume> {
  const { kind, by, since, until, ...more } = wanted;
  const action = { ...newIntent(record, { kind, by, since, until }), ...more };
  const written = await writeVolume(tx, record, { ...change, action, refusal: null });
  await tx.signals.wake(record.providerId, record.id);
  return { ...written, action };
}

/** A volume with the intent that was written into it. */
export type AskedVolume = VolumeRecord & { action: VolumeIntent };

/**
 * A change of a volume on an instance: no other change of the deployment begins meanwhile, and an instance that is
 * restarted for it is not taken for a stopped one. `attempt`: how many calls were sent for it.
 *
 * @throws {ApiError} CHANGE_IN_PROGRESS
 */
export async function beginVolumeAction(
  tx: Pick<Transaction, 'deployments'>,
  deployment: DeploymentRecord,
  { by, now, attempt = 0 }: { by: string; now: number; attempt?: number },
  options: Deps['options'],
): Promise<void> {
  assertNoAction(deployment, now, options);
  const action = newIntent(deployment, { kind: 'volume', by, since: now, until: null });
  await tx.deployments.update({ ...deployment, action: { ...action, attempt } });
}

/** Once no volume of the deployment is in transit any more. */
export async function endVolumeAction(
  tx: Pick<Transaction, 'deployments' | 'volumes'>,
  deployment: DeploymentRecord,
): Promise<void> {
  if (deployment.action?.kind !== 'volume') return;
  const attachments = await tx.volumes.attachmentsOf({ deploymentId: deployment.id });
  if (!attachments.some(isInTransit)) await tx.deployments.update({ ...deployment, action: null });
}
