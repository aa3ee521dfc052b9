import type { Deps } from '../deps.ts';
import type { Transaction } from '../ports/store.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import { deploymentFailedMessage, deploymentReadyMessage } from './messages.ts';
import { queueMail } from './outbox.ts';

/** Mails that a deployment is ready or has failed to the user who made it, if they opted in (M: Events). */
export async function notifyDeployment(
  deps: Pick<Deps, 'random' | 'clock'>,
  tx: Pick<Transaction, 'users' | 'mail'>,
  record: DeploymentRecord,
  news: 'ready' | 'failed',
): Promise<void> {
  const user = await tx.users.byId(record.userId);
  if (user === null) return;
  await queueMail(deps, tx, user, {
    class: 'deployment',
    kind: `deployment_${news}`,
    dedupeKey: `deployment_${news}:${record.id}`,
    ...(news === 'ready' ? deploymentReadyMessage(record) : deploymentFailedMessage(record)),
  });
}
