import type { FailureReason } from '../contract/deployment.ts';
import { transition } from '../deployments/transition.ts';
import { type DeploymentRecord, logNames } from '../records/deployment-record.ts';
import type { TendingContext } from './context.ts';

/** The deployment came to nothing, if it is still what it was when that was decided. What may exist is cleaned up. */
export async function fail(
  context: TendingContext,
  seen: DeploymentRecord,
  failureReason: FailureReason,
  failureDetails: string,
): Promise<void> {
  const { store, clock, log } = context;
  const hasFailed = await store.transact(async (tx) => {
    const record = await tx.deployments.byId(seen.id);
    if (record === null || record.status !== 'deploying' || record.launch.state !== seen.launch.state)
      return false;
    const fields = { failureReason, failureDetails };
    await transition(context, tx, record, { to: 'failed', at: clock.now(), fields });
    return true;
  });
  if (hasFailed)
    log.warn(
      { ...logNames(seen), provider: seen.providerId, failureReason, failureDetails },
      'a deployment failed',
    );
}
