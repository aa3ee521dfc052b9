import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { orchestratorTables } from '../schema/orchestrator.ts';

/** drizzle on one connection or pool. The queries are written against PostgreSQL's types, and run on SQLite too. */
export type Db = NodePgDatabase;

export type Tables = ReturnType<typeof orchestratorTables>;

/** A query for rows, as far as a lock is put on them. */
export interface Lockable {
  for(strength: 'no key update' | 'share', options?: { skipLocked: true }): unknown;
}

/**
 * What several processes on one database need of each other, and one process on a file does not. A lock is held
 * until the transaction ends.
 */
export interface Locking {
  /** Locks the rows that `query` finds, and waits for whoever holds one of them. */
  rows<Query extends Lockable>(query: Query): Query;
  /** Keeps the rows that `query` finds from being written; others may do so at the same time. */
  sharedRows<Query extends Lockable>(query: Query): Query;
  /** Locks the rows that `query` finds, and passes over those that somebody holds. */
  freeRows<Query extends Lockable>(query: Query): Query;
  /** Waits until nobody else holds `name`: for what no row stands for yet. */
  name(name: string): Promise<void>;
}

/** For reads outside of a transaction, and for a database of one process. */
export const noLocking: Locking = {
  rows: (query) => query,
  sharedRows: (query) => query,
  freeRows: (query) => query,
  name: async () => undefined,
};

/** What the queries of both stores run on. It lasts as long as what it connects to: statements are prepared on it. */
export interface Connection<Schema = Tables> {
  db: Db;
  tables: Schema;
  locking: Locking;
}
