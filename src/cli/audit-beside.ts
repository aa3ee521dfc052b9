import { type Stores, withExisting } from '../compose/stores/stores.ts';
import { type AuditedAction, type AuditedStore, audit, refusalOf } from '../operator-kit/audit.ts';
import type { Actor, AuditEntry } from '../operator-kit/model.ts';
import { printError } from '../runtime/print.ts';
import { localActor } from './local-actor.ts';

/**
 * Does work that cannot be part of a transaction, then writes its row of the audit log; if that fails, prints a warning.
 */
export async function auditBeside<T, Store extends AuditedStore & { close(): Promise<void> }>(
  { stores, database, actor = localActor() }: { stores: Stores<Store>; database: string; actor?: Actor },
  { done = () => ({}), ...action }: AuditedAction<T>,
  act: () => Promise<T>,
): Promise<T> {
  const write = (rest: object): Promise<void> =>
    withExisting(stores, database, ({ store, clock }) =>
      store.transact((tx) => audit(tx, clock, actor, { ...action, ...rest })),
    );
  try {
    const value = await act();
    await write(done(value) ?? {}).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      printError(`The audit log has no row of this action: ${reason}\n`);
    });
    return value;
  } catch (error) {
    const refusal = refusalOf(error);
    const outcome: AuditEntry['outcome'] = refusal === undefined ? 'failed' : 'refused';
    const detail = { ...action.detail, reason: refusal ?? String(error) };
    await write({ outcome, detail }).catch(() => undefined);
    throw error;
  }
}
