import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { assertNoAction, type DeploymentRecord } from '../model/deployment-record.ts';
import type { MarketplaceOptions } from '../model/options.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeAction, VolumeRecord } from '../model/volume-record.ts';
import { isInTransit } from './snapshot.ts';

/** What ends once no attachment is on its way any more. */
export const ofAttachments: readonly VolumeAction['kind'][] = ['create', 'attach', 'detach'];

/**
 * What is under way of a volume after changes of the kinds `over` have ended. One change never ends another: a larger
 * size ends by what the provider says, a deletion by proof. As long as an attachment is on its way, something is under
 * way, so that somebody looks after it.
 */
export function actionAfter(
  { action }: Pick<VolumeRecord, 'action'>,
  { over, isInTransit, at }: { over: readonly VolumeAction['kind'][]; isInTransit: boolean; at: number },
): VolumeAction | null {
  if (action !== null && !over.includes(action.kind)) return action;
  if (!isInTransit) return null;
  return action !== null && ofAttachments.includes(action.kind) ? action : { kind: 'detach', since: at };
}

const progressTexts: Readonly<Record<VolumeAction['kind'], string>> = {
  create: 'The volume is being created.',
  attach: 'The volume is being attached.',
  detach: 'The volume is being detached.',
  resize: 'The volume is being resized.',
  delete: 'The volume is being deleted.',
};

/** What only the provider ends: a larger size may cost its price already, and what is deleted may be gone already. */
export function isExclusive({ action }: Pick<VolumeRecord, 'action'>): boolean {
  return action?.kind === 'resize' || action?.kind === 'delete';
}

/** Whether a change was waited for as long as any is. */
export function hasTimedOut({ since }: VolumeAction, now: number, { polling }: MarketplaceOptions): boolean {
  return now - since >= polling.actionMs;
}

/**
 * One change of a volume at a time. One that is given up after `actionMs` holds nobody back, unless it is exclusive.
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
 * What the provider has not made yet cannot be attached or detached, however long that takes: it would not be made.
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
