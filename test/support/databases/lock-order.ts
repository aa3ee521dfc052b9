import type { Store, Transaction } from '../../../src/orchestrator/model/store.ts';
import { RowLocks } from './row-locks.ts';

type Kind = 'instance' | 'volume';

/** Instances sort before volumes, each kind by id. */
function toKey(kind: Kind, id: string): string {
  return `${kind} ${id}`;
}

/** The store, with a report of each transaction that takes locks in another order than the others. */
export function watchLocks(store: Store, report: (violation: string) => void): Store {
  return {
    ...store,
    transact: (body) =>
      store.transact(async (tx) => {
        const locks = new RowLocks();
        const result = await body(watched(tx, locks));
        for (const violation of locks.violations) report(violation);
        return result;
      }),
  };
}

function watched(tx: Transaction, locks: RowLocks): Transaction {
  const { instances, volumes, work } = tx;
  // The id says which kind of resource it is.
  const works = (what: string, id: string): void => {
    if (!locks.has(toKey('instance', id)) && !locks.has(toKey('volume', id)))
      locks.violations.push(`work.${what} of ${id} before its row is locked`);
  };
  return {
    ...tx,
    instances: {
      ...instances,
      byId: after((id) => locks.locks(toKey('instance', id)), instances.byId),
      insert: after(({ id }) => locks.inserts(toKey('instance', id)), instances.insert),
    },
    volumes: {
      ...volumes,
      byId: after((id) => locks.locks(toKey('volume', id)), volumes.byId),
      insert: after(({ id }) => locks.inserts(toKey('volume', id)), volumes.insert),
    },
    work: {
      ...work,
      of: after((id) => works('of', id), work.of),
      put: after(({ resourceId }) => works('put', resourceId), work.put),
      makeDue: after((id, _now) => works('makeDue', id), work.makeDue),
      check: after(({ resourceId }) => works('check', resourceId), work.check),
    },
  };
}

function after<Args extends unknown[], T>(
  note: (...args: Args) => void,
  call: (...args: Args) => T,
): (...args: Args) => T {
  return (...args) => {
    note(...args);
    return call(...args);
  };
}
