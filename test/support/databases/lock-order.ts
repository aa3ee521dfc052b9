import type { Store, Transaction } from '../../../src/orchestrator/model/store.ts';

/** What one transaction did with the rows that are locked, in order. */
class Locks {
  readonly violations: string[] = [];
  readonly #inserted = new Set<string>();
  readonly #held: string[] = [];

  inserts(kind: 'instance' | 'volume', id: string): void {
    this.#inserted.add(toKey(kind, id));
  }

  reads(kind: 'instance' | 'volume', id: string): void {
    const key = toKey(kind, id);
    if (this.#inserted.has(key) || this.#held.includes(key)) return;
    const later = this.#held.find((held) => held > key);
    if (later !== undefined) this.violations.push(`${key} is locked after ${later}`);
    this.#held.push(key);
  }

  /** Of which kind the resource is, its id tells. */
  works(what: string, id: string): void {
    const isLocked = ['instance', 'volume'].some((kind) => {
      const key = toKey(kind as 'instance' | 'volume', id);
      return this.#held.includes(key) || this.#inserted.has(key);
    });
    if (!isLocked) this.violations.push(`work.${what} of ${id} before its row is locked`);
  }
}

/** Instances sort before volumes, each kind by id. */
function toKey(kind: 'instance' | 'volume', id: string): string {
  return `${kind} ${id}`;
}

/** The store, telling of each transaction that takes locks in another order than all the others. */
export function watchLocks(store: Store, tell: (violation: string) => void): Store {
  return {
    ...store,
    transact: (body) =>
      store.transact(async (tx) => {
        const locks = new Locks();
        const result = await body(watched(tx, locks));
        for (const violation of locks.violations) tell(violation);
        return result;
      }),
  };
}

function watched(tx: Transaction, locks: Locks): Transaction {
  const { instances, volumes, work } = tx;
  return {
    ...tx,
    instances: {
      ...instances,
      byId: after((id) => locks.reads('instance', id), instances.byId),
      insert: after(({ id }) => locks.inserts('instance', id), instances.insert),
    },
    volumes: {
      ...volumes,
      byId: after((id) => locks.reads('volume', id), volumes.byId),
      insert: after(({ id }) => locks.inserts('volume', id), volumes.insert),
    },
    work: {
      ...work,
      of: after((id) => locks.works('of', id), work.of),
      put: after(({ resourceId }) => locks.works('put', resourceId), work.put),
      makeDue: after((id, _now) => locks.works('makeDue', id), work.makeDue),
      check: after(({ resourceId }) => locks.works('check', resourceId), work.check),
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
