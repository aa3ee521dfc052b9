import type { Deps } from '../deps.ts';
import { newId } from '../ids.ts';
import type { Transaction } from '../ports/store.ts';
import type { MailRecord } from '../records/mail-record.ts';
import type { UserRecord } from '../records/people.ts';

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
