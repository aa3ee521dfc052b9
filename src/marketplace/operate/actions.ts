import { type AuditedAction, audited } from '../../operators/audit.ts';
import type { Actor } from '../../operators/model.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import { toDollars } from '../contract/values.ts';
import { type Booked, book, type Credit } from '../ledger/credit.ts';
import { type DeploymentRecord, isActive, isLost, type LostDeployment } from '../model/deployment-record.ts';
import type { LedgerTransactionRecord, MailRecord } from '../model/ledger-records.ts';
import { OperatorError } from '../model/own-rows.ts';
import type { Store } from '../model/store.ts';
import { acceptLosses } from '../providers/loss-cap.ts';

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
}

/** A booking of an amount for a team, with the fields that its kind needs. */
export type Booking =
  | ({ kind: 'top_up'; reference: string } & Credit)
  | ({ kind: 'grant' } & Credit)
  | ({ kind: 'adjustment'; reason: string } & Credit);

/** Books a credit. A repeated booking does not add a second row to the audit log. @throws {OperatorError} */
export async function bookCredit(
  deps: Deps,
  actor: Actor,
  { kind, ...credit }: Booking,
): Promise<LedgerTransactionRecord> {
  const { teamId, amountMicroUsd, reference = null, reason = null } = credit;
  const action: AuditedAction<Booked> = {
    action: `credit.${kind}`,
    subject: teamId,
    detail: { amount: toDollars(amountMicroUsd), reference, reason },
    done: ({ isReplay }) => (isReplay ? null : {}),
  };
  const { record } = await audited(deps, actor, action, (store) => book({ ...deps, store }, kind, credit));
  return record;
}

/** Accepts all losses of the provider for `forMs`. Returns the end of that time. @throws {OperatorError} */
export function acceptProviderLosses(
  deps: Deps,
  actor: Actor,
  { providerId, forMs }: { providerId: string; forMs: number },
): Promise<number> {
  const until = deps.clock.now() + forMs;
  const detail = { until: new Date(until).toISOString() };
  return audited(deps, actor, { action: 'losses.accept', subject: providerId, detail }, async (store) => {
    if (!(await store.read.losses.providers()).includes(providerId))
      throw new OperatorError(
        `No losses are recorded for provider "${providerId}": see \`berth marketplace losses\`.`,
      );
    await acceptLosses({ store }, providerId, until);
    return until;
  });
}

/**
 * Orders the deletion of the instance of a deployment that ended because its provider answered 404. A server deletes it
 * at once; if it appears only later, the sweep deletes it.
 *
 * @throws {OperatorError}
 */
export function cleanUpLost(deps: Deps, actor: Actor, id: string): Promise<LostDeployment> {
  return audited(deps, actor, { action: 'losses.clean_up', subject: id }, (store) =>
    store.transact(async (tx) => {
      const record = await tx.deployments.byId(id);
      if (record === null)
        throw new OperatorError(
          `There is no deployment "${id}": see \`berth marketplace deployments ls\`.`,
          'not_found',
        );
      if (!isLost(record)) throw new OperatorError(whyNotLost(record));
      const wanted: LostDeployment = { ...record, cleanup: 'wanted' };
      await tx.deployments.update(wanted);
      await tx.signals.wake(record.providerId, id);
      return wanted;
    }),
  );
}

function whyNotLost(record: DeploymentRecord): string {
  const { id, status, cleanup } = record;
  if (isActive(record)) return `The deployment "${id}" is ${status}: it has not ended.`;
  if (cleanup === 'wanted') return `The instance of the deployment "${id}" is already being deleted.`;
  if (cleanup === 'done') return `The instance of the deployment "${id}" is already deleted.`;
  return `The deployment "${id}" never had an instance.`;
}

/** Retries a waiting or given-up mail now. A given-up mail gets three more days. @throws {OperatorError} */
export function resendMail(deps: Deps, actor: Actor, id: string): Promise<MailRecord> {
  return audited(deps, actor, { action: 'mail.resend', subject: id }, (store) =>
    store.transact(async (tx) => {
      const record = await tx.mail.byId(id);
      if (record === null)
        throw new OperatorError(`There is no mail "${id}": see \`berth marketplace mail ls\`.`, 'not_found');
      if (record.sentAt !== null)
        throw new OperatorError(`The mail "${id}" was already sent: it is not sent twice.`);
      const now = deps.clock.now();
      const createdAt = record.failedAt === null ? record.createdAt : now;
      const due: MailRecord = { ...record, createdAt, dueAt: now, failedAt: null };
      await tx.mail.update(due);
      return due;
    }),
  );
}
