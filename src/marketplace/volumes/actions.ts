import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { assertNoAction, type DeploymentRecord } from '../model/deployment-record.ts';
import type { MarketplaceOptions } from '../model/options.ts';
import type { Transaction } from '../model/store.ts';
import type { AttachmentRecord, VolumeAction, VolumeRecord } from '../model/volume-record.ts';
import { isInTransit, type VolumeSnapshot, writeVolume } from './snapshot.ts';

/** The actions that end once no attachment is in transit. */
export const ofAttachments: readonly VolumeAction['kind'][] = ['create', 'attach', 'detach'];

/**
 * The action of a volume after actions of the kinds `over` have ended, with the attachments that are left. One action
 * never ends another: a resize ends when the provider shows the size, a deletion by proof. While an attachment is in
 * transit there is an action, so that the volume is synced.
 */
export function actionAfter(
  { action }: Pick<VolumeRecord, 'action'>,
  over: readonly VolumeAction['kind'][],
  left: readonly Pick<AttachmentRecord, 'state'>[],
  at: number,
): VolumeAction | null {
  if (action !== null && !over.includes(action.kind)) return action;
  if (!left.some(isInTransit)) return null;
  return action !== null && ofAttachments.includes(action.kind) ? action : { kind: 'detach', since: at };
}

/** Ends a resize that the provider has refused, or has not shown in time. */
export async function endResize(
  tx: Pick<Transaction, 'volumes'>,
  { record, attachments }: VolumeSnapshot,
  at: number,
): Promise<boolean> {
  await writeVolume(tx, record, { action: actionAfter(record, ['resize'], attachments, at) });
  return true;
}

const progressTexts: Readonly<Record<VolumeAction['kind'], string>> = {
  create: 'The volume is being created.',
  attach: 'The volume is being attached.',
  detach: 'The volume is being detached.',
  resize: 'The volume is being resized.',
  delete: 'The volume is being deleted.',
};

/**
 * Whether only the provider can end the action: a resize may have taken effect, and a deleted volume may be gone.
 */
export function isExclusive({ action }: Pick<VolumeRecord, 'action'>): boolean {
  return action?.kind === 'resize' || action?.kind === 'delete';
}

/** Whether the action has lasted as long as any may. */
export function hasTimedOut({ since }: VolumeAction, now: number, { polling }: MarketplaceOptions): boolean {
  return now - since >= polling.actionMs;
}

/**
 * Allows one action of a volume at a time. One that has timed out blocks no other, unless it is exclusive.
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

/**
 * A change of a volume on an instance: no other change of the deployment begins meanwhile, and an instance that is
 * restarted for it is not taken for a stopped one.
 *
 * @throws {ApiError} CHANGE_IN_PROGRESS
 */
export async function beginVolumeAction(
  tx: Pick<Transaction, 'deployments'>,
  deployment: DeploymentRecord,
  now: number,
  options: Deps['options'],
): Promise<void> {
  assertNoAction(deployment, now, options);
  await tx.deployments.update({ ...deployment, action: { kind: 'volume', since: now, isSent: true } });
}

/** Once no volume of the deployment is on its way any more. */
export async function endVolumeAction(
  tx: Pick<Transaction, 'deployments' | 'volumes'>,
  deployment: DeploymentRecord,
): Promise<void> {
  if (deployment.action?.kind !== 'volume') return;
  const attachments = await tx.volumes.attachmentsOf({ deploymentId: deployment.id });
  if (!attachments.some(isInTransit)) await tx.deployments.update({ ...deployment, action: null });
}
