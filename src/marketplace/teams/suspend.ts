import type { Deps } from '../deps.ts';
import { restoredMessage, suspendedMessage } from '../mail/messages.ts';
import { mailManagers, type News, queueMail } from '../mail/outbox.ts';
import { findTeam, OperatorError } from '../model/own-rows.ts';
import type { Suspension } from '../model/people.ts';
import type { Reader, Transaction } from '../model/store.ts';
import { findUser } from './users.ts';

type SuspendDeps = Pick<Deps, 'clock' | 'random'>;

/** A user or a team that an operator suspends or restores. */
export interface Suspendable {
  kind: 'user' | 'team';
  id: string;
  /** The e-mail address of a user, the slug of a team. */
  name: string;
  suspension: Suspension | null;
}

/** Locks the row if `read` is a transaction. @throws {OperatorError} */
export async function findSuspendable(
  { users, teams }: Pick<Reader, 'users' | 'teams'>,
  kind: Suspendable['kind'],
  named: string,
): Promise<Suspendable> {
  if (kind === 'user') {
    const { id, email: name, suspension } = await findUser(users, named);
    return { kind, id, name, suspension };
  }
  const { id, slug: name, suspension } = await findTeam(teams, named);
  return { kind, id, name, suspension };
}

/** All that are suspended now. */
export async function suspendedNow({
  users,
  teams,
}: Pick<Reader, 'users' | 'teams'>): Promise<Suspendable[]> {
  return [
    ...(await users.suspended()).map(({ id, email: name, suspension }) => ({
      kind: 'user' as const,
      id,
      name,
      suspension,
    })),
    ...(await teams.suspended()).map(({ id, slug: name, suspension }) => ({
      kind: 'team' as const,
      id,
      name,
      suspension,
    })),
  ];
}

/** Suspends a locked user or team and mails them. A second suspension replaces the first. */
export async function suspend(
  deps: SuspendDeps,
  tx: Transaction,
  of: Suspendable,
  wanted: Omit<Suspension, 'at'>,
): Promise<void> {
  const suspension = { ...wanted, at: deps.clock.now() };
  await write(tx, of, suspension);
  await mail(deps, tx, of, { kind: 'suspended', ...suspendedMessage(of.name, suspension) });
}

/** @throws {OperatorError} if it is not suspended */
export async function restore(deps: SuspendDeps, tx: Transaction, of: Suspendable): Promise<void> {
  assertSuspended(of);
  await write(tx, of, null);
  await mail(deps, tx, of, { kind: 'restored', ...restoredMessage(of.name) });
}

export function assertSuspended({ kind, name, suspension }: Suspendable): void {
  if (suspension === null) throw new OperatorError(`The ${kind} ${name} is not suspended.`);
}

async function write(
  { users, teams }: Pick<Transaction, 'users' | 'teams'>,
  { kind, id }: Suspendable,
  suspension: Suspension | null,
): Promise<void> {
  if (kind === 'user') {
    const user = await users.byId(id);
    if (user !== null) await users.update({ ...user, suspension });
    return;
  }
  const team = await teams.byId(id);
  if (team !== null) await teams.update({ ...team, suspension });
}

/** Mails the user, or the owner and the admins of the team. */
async function mail(
  deps: SuspendDeps,
  tx: Transaction,
  { kind, id }: Suspendable,
  news: Pick<News, 'kind' | 'subject' | 'text'>,
): Promise<void> {
  const dedupeKey = `${news.kind}:${id}:${deps.clock.now()}`;
  const all = { class: 'billing', dedupeKey, ...news } as const;
  if (kind === 'team') return mailManagers(deps, tx, { id }, all);
  const user = await tx.users.byId(id);
  if (user !== null) await queueMail(deps, tx, user, all);
}
