import type { Deps } from '../deps.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { MailRecord } from '../model/ledger-records.ts';
import { newId } from '../model/names.ts';
import type { TeamRecord, UserRecord } from '../model/people.ts';
import type { Transaction } from '../model/store.ts';
import { deploymentFailedMessage, deploymentReadyMessage } from './messages.ts';

export type News = Pick<MailRecord, 'class' | 'kind' | 'dedupeKey' | 'subject' | 'text'>;

/** Queues a mail if the user wants its class. It is sent after the transaction, once for each `dedupeKey`. */
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

/** M: Events: "account and billing emails cannot" be switched off. Deployment mails are opt-in. */
function wants(
  user: Pick<UserRecord, 'wantsDeploymentMail' | 'wantsMarketingMail'>,
  mailClass: MailRecord['class'],
): boolean {
  if (mailClass === 'billing') return true;
  return mailClass === 'deployment' ? user.wantsDeploymentMail : user.wantsMarketingMail;
}

/** Queues a billing mail for the owner and the admins of a team. */
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

/** Mails the user who created the deployment (M: Events). */
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
