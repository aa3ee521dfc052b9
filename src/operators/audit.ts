import type { Clock } from '../ports/clock.ts';
import { Fatal, StoreUnavailable } from '../ports/errors.ts';
import { withOverrides } from '../ports/with-overrides.ts';
import type { Actor, AuditEntry, AuditWriter } from './model.ts';

/** As long as a text of the audit log may be. */
const MAX_TEXT = 1_000;

/** What an operator does, as the audit log has it. */
export interface AuditedAction<T = unknown> {
  /** Such as `alarm.acknowledge`. */
  action: string;
  /** What is acted on, such as the id of an instance. */
  subject?: string;
  /** What else was given, without secrets. */
  detail?: Record<string, unknown>;
  /** What is known only when it is done, such as the id of what was made; null: it was done before, and changed nothing. */
  done?: (value: T) => { subject?: string } | null;
}

/** A store whose transactions can write the audit log, whatever else they can. */
export interface AuditedStore<Tx = { audit: AuditWriter }> {
  transact<T>(body: (tx: Tx) => Promise<T>): Promise<T>;
}

/** Writes a row of the audit log, in the transaction that does what it tells of. */
export async function audit(
  tx: { audit: Pick<AuditWriter, 'add'> },
  clock: Pick<Clock, 'now'>,
  { name: actor, source, address }: Actor,
  { action, subject = null, detail = {}, outcome = 'done' }: AuditedEntry,
): Promise<void> {
  const known = { at: clock.now(), actor, source, address, action, outcome };
  const cutDetail = Object.fromEntries(
    Object.entries(detail).map(([name, value]) => [name, typeof value === 'string' ? cut(value) : value]),
  );
  await tx.audit.add({ ...known, subject: subject && cut(subject), detail: cutDetail });
}

/** What is refused may name anything that a request can carry, and its row is kept for a year. */
function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT - 1).toWellFormed()}…`;
}

type AuditedEntry = Omit<AuditedAction, 'subject' | 'done'> & {
  subject?: string | null;
  outcome?: AuditEntry['outcome'];
};

/** The store, whose transactions are parts of `tx`. */
export function within<Store extends AuditedStore>(store: Store, tx: { audit: AuditWriter }): Store {
  const transact: AuditedStore['transact'] = (body) => body(tx);
  return withOverrides(store, { transact } as Partial<Store>);
}

/**
 * Does what an operator asks for and writes its row of the audit log, in one transaction: `act` is given a store whose
 * `transact` is part of it. What was refused or failed leaves a row too, where that can be written.
 */
export async function audited<Store extends AuditedStore, T>(
  { store, clock }: { store: Store; clock: Pick<Clock, 'now'> },
  actor: Actor,
  { done = () => ({}), ...action }: AuditedAction<T>,
  act: (store: Store) => Promise<T>,
): Promise<T> {
  try {
    return await store.transact(async (tx) => {
      const value = await act(within(store, tx));
      const known = done(value);
      if (known !== null) await audit(tx, clock, actor, { ...action, ...known });
      return value;
    });
  } catch (error) {
    const refusal = refusalOf(error);
    const failure =
      error instanceof StoreUnavailable
        ? 'the database did not answer: it is not known whether this was done'
        : 'it failed; see the log';
    const detail = { ...action.detail, reason: refusal ?? failure };
    const outcome = refusal === undefined ? 'failed' : 'refused';
    await store
      .transact((tx) => audit(tx, clock, actor, { ...action, detail, outcome }))
      .catch(() => undefined);
    throw error;
  }
}

/** Finds what an action is about; where that is refused, so is the action, and it leaves its row. */
export async function auditedLookup<T>(
  deps: { store: AuditedStore; clock: Pick<Clock, 'now'> },
  actor: Actor,
  action: AuditedAction,
  look: () => T | Promise<T>,
): Promise<T> {
  try {
    return await look();
  } catch (error) {
    return audited(deps, actor, action as AuditedAction<T>, () => Promise.reject(error));
  }
}

/** The sentence for the operator, where a use case would not do it; undefined: it failed. */
export function refusalOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  // The error of either product's API has a status.
  const isRefused = error instanceof Fatal || ('status' in error && Number(error.status) < 500);
  return isRefused ? error.message : undefined;
}
