import { type AuditedAction, audited } from '../../operators/audit.ts';
import type { Actor } from '../../operators/model.ts';
import type { Clock } from '../../ports/clock.ts';
import { withOverrides } from '../../ports/with-overrides.ts';
import { Duplicate, type Store } from '../model/store.ts';

/** Does what an operator asks for, and writes its row of the audit log, in one transaction: see `audited`. */
export function auditedAction<T>(
  { store, clock }: { store: Store; clock: Clock },
  actor: Actor,
  action: AuditedAction,
  act: (store: Store) => Promise<T>,
): Promise<T> {
  // Of two that write the same at once, the other was first: what it wrote is there to be found now.
  const transact: Store['transact'] = (body) =>
    store
      .transact(body)
      .catch((error) => (error instanceof Duplicate ? store.transact(body) : Promise.reject(error)));
  return audited({ store: withOverrides(store, { transact }), clock }, actor, action, act);
}
