import type { Deps } from '../deps.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { MailRecord } from '../model/ledger-records.ts';
import { newId } from '../model/names.ts';
import type { TeamRecord, UserRecord } from '../model/people.ts';
import type { Transaction } from '../model/store.ts';
import { deploymentFailedMessage, deploymentReadyMessage } from './messages.ts';

export type News = Pick<MailRecord, 'class' | 'kind' | 'dedupeKey' | 'subject' | 'text'>;

/**
 * Decides on a mail to a user, who wants its class; it is sent after the transaction. The same news, by its
 * `dedupeKey`, is mailed to a user once.
 */
export async function queueMail(
  { random, clock }: Pick<Deps, 'random' | 'clock'>,
  tx: Pick<Transaction, 'mail'>,
  user: Pick<UserRecord, 'id' | 'email' | 'wantsDeploymentMail' | 'wantsMarketingMail'>,
  { dedupeKey, ...news }: News,
): Promise<void> {
  if (!wants(user, news.class)) return;
  const now = clock.now();
  await tx.mail.insert({
    id: newId(random, 'mail'),
    ...news,
    dedupeKey: `${dedupeKey}:${user.id}`,
    to: user.email,
    createdAt: now,
    dueAt: now,
    attempts: 0,
    lastError: null,
    sentAt: null,
    failedAt: null,
  });
}

/** M: Events: "Marketing emails can be switched off; account and billing emails cannot"; deployments are opt-in. */
function wants(
  user: Pick<UserRecord, 'wantsDeploymentMail' | 'wantsMarketingMail'>,
  mailClass: MailRecord['class'],
): boolean {
  if (mailClass === 'billing') return true;
  return mailClass === 'deployment' ? user.wantsDeploymentMail : user.wantsMarketingMail;
}

/** Mails news of a team's money to its owner and admins. */
export async function mailManagers(
  deps: Pick<Deps, 'random' | 'clock'>,
  tx: Pick<Transaction, 'teams' | 'users' | 'mail'>,
  team: Pick<TeamRecord, 'id'>,
  news: News,
): Promise<void> {
  for (const { userId, role } of await tx.teams.members(team.id)) {
    if (role === 'member') continue;
    const user = await tx.users.byId(userId);
    if (user !== null) await queueMail(deps, tx, user, news);
  }
}

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
