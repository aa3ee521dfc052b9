import type { Clock } from '../ports/clock.ts';
import { Fatal, StoreUnavailable } from '../ports/errors.ts';
import type { Actor, AuditEntry, AuditWriter } from './model.ts';

/** Maximum length of a text in the audit log. */
const MAX_TEXT = 1_000;

/** An operator's action, as the audit log stores it. */
export interface AuditedAction<T = unknown> {
  /** Such as `alarm.acknowledge`. */
  action: string;
  /** The object of the action, such as the id of an instance. */
  subject?: string;
  /** Other parameters, without secrets. */
  detail?: Record<string, unknown>;
  /**
   * Returns details that are known only after the action, such as the id of the created object. Null if the action
   * changed nothing.
   */
  done?: (value: T) => { subject?: string; detail?: Record<string, unknown> } | null;
}

/** A store whose transactions can write the audit log. */
export interface AuditedStore<Tx = { audit: AuditWriter }> {
  transact<T>(body: (tx: Tx) => Promise<T>): Promise<T>;
}

/** Writes a row of the audit log in the transaction of the action. */
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

/** Shortens a text: a refused action may contain any text of a request, and its row is kept for a year. */
function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT - 1).toWellFormed()}…`;
}

type AuditedEntry = Omit<AuditedAction, 'subject' | 'done'> & {
  subject?: string | null;
  outcome?: AuditEntry['outcome'];
};

/** Returns the store with its transactions nested in `tx`. */
export function within<Store extends AuditedStore>(store: Store, tx: { audit: AuditWriter }): Store {
  const transact: AuditedStore['transact'] = (body) => body(tx);
  return { ...store, transact };
}

/** Controls, marks that change the direction of text, and others that do not show; not the joiners of some scripts. */
const INVISIBLE = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Operators' texts are shown in consoles, terminals and the catalog. @throws {Fatal} */
function assertVisible(detail: Readonly<Record<string, unknown>>): void {
  for (const [name, text] of Object.entries(detail)) {
    const code = typeof text === 'string' ? INVISIBLE.exec(text)?.[0].codePointAt(0) : undefined;
    if (code === undefined) continue;
    const point = code.toString(16).toUpperCase().padStart(4, '0');
    throw new Fatal(`${name} has an invisible character (U+${point}): remove it.`);
  }
}

/**
 * Performs an operator's action and writes its row of the audit log, in one transaction: the `transact` of the store
 * that `act` receives is nested in it. A refused or failed action also gets a row, if it can be written.
 * @throws {Fatal} if a text of its details has an invisible character
 */
export async function audited<Store extends AuditedStore, T>(
  { store, clock }: { store: Store; clock: Pick<Clock, 'now'> },
  actor: Actor,
  { done = () => ({}), ...action }: AuditedAction<T>,
  act: (store: Store) => Promise<T>,
): Promise<T> {
  try {
    assertVisible(action.detail ?? {});
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
        ? 'the database did not answer: it is unknown whether this was done'
        : 'it failed; see the log';
    const detail = { ...action.detail, reason: refusal ?? failure };
    const outcome = refusal === undefined ? 'failed' : 'refused';
    await store
      .transact((tx) => audit(tx, clock, actor, { ...action, detail, outcome }))
      .catch(() => undefined);
    throw error;
  }
}

/** Returns the message for the operator if a use case refused, or undefined if it failed. */
export function refusalOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  // The error of either product's API has a status.
  const isRefused = error instanceof Fatal || ('status' in error && Number(error.status) < 500);
  return isRefused ? error.message : undefined;
}
