import type { Store, Transaction } from '../../../src/marketplace/model/store.ts';
import { RowLocks } from './row-locks.ts';

/** The order in which every transaction locks rows; of one kind by id. */
const KINDS = ['deployment', 'volume', 'segment', 'team', 'user'] as const;
type Kind = (typeof KINDS)[number];

function toKey(kind: Kind, id: string): string {
  return `${KINDS.indexOf(kind)} ${kind} ${id}`;
}

/** The store, with a report of each transaction of a marketplace that takes locks in another order than the others. */
export function watchMarketplaceLocks(store: Store, report: (violation: string) => void): Store {
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
  const { deployments, volumes, ledger, teams, users } = tx;
  const found =
    <Key, T extends { id: string }>(kind: Kind, read: (key: Key) => Promise<T | null>) =>
    async (key: Key): Promise<T | null> => {
      const record = await read(key);
      if (record !== null) locks.locks(toKey(kind, record.id));
      return record;
    };
  const lockSorted = (kind: Kind, ids: readonly string[]): void => {
    for (const id of ids.toSorted()) locks.locks(toKey(kind, id));
  };
  const inserting =
    <T extends { id: string }>(kind: Kind, insert: (record: T) => Promise<void>) =>
    async (record: T): Promise<void> => {
      locks.inserts(toKey(kind, record.id));
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
        if (open !== null) locks.locks(toKey('segment', open.id));
        return open;
      },
      insertSegment: inserting('segment', ledger.insertSegment),
      book: async (transaction, entries) => {
        locks.locks(toKey('team', transaction.teamId));
        await ledger.book(transaction, entries);
      },
      lockBilled: async (wanted) => {
        const ids = (subjectKind: string) =>
          wanted.filter((it) => it.subjectKind === subjectKind).map(({ subjectId }) => subjectId);
        lockSorted('deployment', ids('deployment'));
        lockSorted('volume', ids('volume'));
        lockSorted(
          'segment',
          wanted.map(({ id }) => id),
        );
        return ledger.lockBilled(wanted);
      },
      post: async (postings) => {
        lockSorted(
          'team',
          postings.flatMap(({ usage }) => usage?.transaction.teamId ?? []),
        );
        await ledger.post(postings);
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
