import { assertNoAction } from '../deployments/assert-no-action.ts';
import type { Deps } from '../deps.ts';
import type { Transaction } from '../ports/store.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import { isInTransit } from './look.ts';

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
