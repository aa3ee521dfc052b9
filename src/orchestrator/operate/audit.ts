import { ApiError } from '../../contract/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import { withOverrides } from '../../ports/with-overrides.ts';
import type { Actor, AuditEntry } from '../model/operator.ts';
import type { Store, Transaction } from '../model/store.ts';

/** What an operator does, as the audit log has it. */
export interface AuditedAction {
  /** Such as `alarm.acknowledge`. */
  action: string;
  /** What is acted on, such as the id of an instance. */
  subject?: string;
  /** What else was given, without secrets. */
  detail?: Record<string, unknown>;
}

/** Writes a row of the audit log, in the transaction that does what it tells of. */
export async function audit(
  tx: Pick<Transaction, 'audit'>,
  clock: Pick<Clock, 'now'>,
  { name: actor, source, address }: Actor,
  { action, subject = null, detail = {}, outcome = 'done' }: AuditedEntry,
): Promise<void> {
  await tx.audit.add({ at: clock.now(), actor, source, address, action, subject, detail, outcome });
}

type AuditedEntry = Omit<AuditedAction, 'subject'> & {
  subject?: string | null;
  outcome?: AuditEntry['outcome'];
};

/** The store whose next transaction is this one. */
export function within(store: Store, tx: Transaction): Store {
  return withOverrides(store, { transact: (body) => body(tx) });
}

/**
 * Does what an operator asks for and writes its row of the audit log, in one transaction: `act` is given a store whose
 * `transact` is part of it. What was refused or failed leaves a row too, where that can be written.
 */
export async function audited<T>(
  { store, clock }: { store: Store; clock: Pick<Clock, 'now'> },
  actor: Actor,
  action: AuditedAction,
  act: (store: Store) => Promise<T>,
): Promise<T> {
  try {
    return await store.transact(async (tx) => {
      const value = await act(within(store, tx));
      await audit(tx, clock, actor, action);
      return value;
    });
  } catch (error) {
    const isRefused = error instanceof Fatal || (error instanceof ApiError && error.status < 500);
    const detail = { ...action.detail, reason: isRefused ? error.message : 'it failed; see the log' };
    const outcome = isRefused ? 'refused' : 'failed';
    await store
      .transact((tx) => audit(tx, clock, actor, { ...action, detail, outcome }))
      .catch(() => undefined);
    throw error;
  }
}
