import type { Store, Transaction } from '../../../src/marketplace/model/store.ts';

/** The order in which every transaction locks rows; of one kind by id. */
const KINDS = ['deployment', 'volume', 'segment', 'team', 'user'] as const;
type Kind = (typeof KINDS)[number];

/** What one transaction locked, in order. What it inserted itself nobody else can wait for. */
class Locks {
  readonly violations: string[] = [];
  readonly #inserted = new Set<string>();
  readonly #held: string[] = [];

  inserts(kind: Kind, id: string): void {
    this.#inserted.add(toKey(kind, id));
  }

  locks(kind: Kind, id: string): void {
    const key = toKey(kind, id);
    if (this.#inserted.has(key) || this.#held.includes(key)) return;
    const later = this.#held.find((held) => held > key);
    if (later !== undefined) this.violations.push(`${key} is locked after ${later}`);
    this.#held.push(key);
  }
}

function toKey(kind: Kind, id: string): string {
  return `${KINDS.indexOf(kind)} ${kind} ${id}`;
}

/** The store, telling of each transaction of a marketplace that takes locks in another order than all the others. */
export function watchMarketplaceLocks(store: Store, tell: (violation: string) => void): Store {
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
  const { deployments, volumes, ledger, teams, users } = tx;
  const found =
    <Key, T extends { id: string }>(kind: Kind, read: (key: Key) => Promise<T | null>) =>
    async (key: Key): Promise<T | null> => {
      const record = await read(key);
      if (record !== null) locks.locks(kind, record.id);
      return record;
    };
  const inserting =
    <T extends { id: string }>(kind: Kind, insert: (record: T) => Promise<void>) =>
    async (record: T): Promise<void> => {
      locks.inserts(kind, record.id);
      await insert(record);
    };
  return {
    ...tx,
    deployments: {
      ...deployments,
      byId: found('deployment', deployments.byId),
      insert: inserting('deployment', deployments.insert),
    },
    volumes: {
      ...volumes,
      byId: found('volume', volumes.byId),
      byVolumeId: found('volume', volumes.byVolumeId),
      insert: inserting('volume', volumes.insert),
    },
    ledger: {
      ...ledger,
      segmentById: found('segment', ledger.segmentById),
      openSegmentOf: async (kind, subjectId) => {
        const open = await ledger.openSegmentOf(kind, subjectId);
        if (open !== null) locks.locks('segment', open.id);
        return open;
      },
      insertSegment: inserting('segment', ledger.insertSegment),
      book: async (transaction, entries) => {
        locks.locks('team', transaction.teamId);
        await ledger.book(transaction, entries);
      },
    },
    teams: { ...teams, byId: found('team', teams.byId), insert: inserting('team', teams.insert) },
    users: {
      ...users,
      byId: found('user', users.byId),
      insert: inserting('user', users.insert),
    },
  };
}
