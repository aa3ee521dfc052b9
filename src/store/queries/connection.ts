import { type Column, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { orchestratorTables } from '../schema/orchestrator.ts';

/** drizzle on one connection or pool. The queries are written against PostgreSQL's types, and also run on SQLite. */
export type Db = NodePgDatabase;

export type Tables = ReturnType<typeof orchestratorTables>;

/** A query whose rows can be locked. */
export interface Lockable {
  for(strength: 'no key update' | 'share', options?: { skipLocked: true }): unknown;
}

/**
 * Locks between processes that share a database. A database of one process needs none. A lock is held until the
 * transaction ends.
 */
export interface Locking {
  /** Locks the rows that `query` finds, and waits for other holders. */
  rows<Query extends Lockable>(query: Query): Query;
  /** Takes a shared lock on the rows that `query` finds: no other transaction may write them. */
  sharedRows<Query extends Lockable>(query: Query): Query;
  /** Locks the rows that `query` finds, and skips locked ones. */
  freeRows<Query extends Lockable>(query: Query): Query;
  /** Locks a name, for cases without a row to lock. */
  name(name: string): Promise<void>;
  /** Takes a shared lock on a name. `name` waits for all of them. */
  sharedName(name: string): Promise<void>;
}

/** For reads outside a transaction, and for a database of one process. */
export const noLocking: Locking = {
  rows: (query) => query,
  sharedRows: (query) => query,
  freeRows: (query) => query,
  name: async () => undefined,
  sharedName: async () => undefined,
};

/**
 * The connection for the queries of both stores, with the tables of its schema. It lives as long as its database
 * connection: statements are prepared on it.
 */
export type Connection<Schema = Tables> = DatabaseAccess & Schema;

interface DatabaseAccess {
  db: Db;
  locking: Locking;
  /**
   * Converts A to Z to lower case and no other letter. The result is the same in each database, whatever its locale.
   */
  lower(text: Column | SQL): SQL;
  /**
   * Awaits a write whose answer is not needed. A PostgreSQL transaction does not wait for it: it is sent with the next
   * statement, and if it fails, the transaction fails.
   */
  write(sent: Promise<unknown>): Promise<void>;
  /** A write outside a transaction changes rows only under this condition. */
  onlyIf?: SQL;
}

/** For writes outside a transaction, and for databases without a round trip. */
export async function awaitWrite(sent: Promise<unknown>): Promise<void> {
  await sent;
}

/** Whether a text contains another one, ignoring the case of A to Z. Wildcards in `part` are escaped. */
export function contains({ lower }: Pick<Connection, 'lower'>, text: Column | SQL, part: string): SQL {
  const folded = part.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  return sql`${lower(text)} LIKE ${`%${folded.replace(/[\\%_]/g, '\\$&')}%`} ESCAPE '\\'`;
}
