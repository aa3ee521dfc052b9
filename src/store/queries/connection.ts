import { type Column, type SQL, sql } from 'drizzle-orm';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { orchestratorTables } from '../schema/orchestrator.ts';

/** drizzle on one connection or pool. The queries are written against PostgreSQL's types, and run on SQLite too. */
export type Db = NodePgDatabase;

export type Tables = ReturnType<typeof orchestratorTables>;

/** A query whose rows can be locked. */
export interface Lockable {
  for(strength: 'no key update' | 'share', options?: { skipLocked: true }): unknown;
}

/**
 * Locks between processes that share a database; a file of one process needs none. A lock is held until the transaction
 * ends.
 */
export interface Locking {
  /** Locks the rows that `query` finds, and waits for other holders. */
  rows<Query extends Lockable>(query: Query): Query;
  /** Takes a shared lock on the rows that `query` finds: nobody may write them. */
  sharedRows<Query extends Lockable>(query: Query): Query;
  /** Locks the rows that `query` finds, and skips those that are locked. */
  freeRows<Query extends Lockable>(query: Query): Query;
  /** Locks a name, where there is no row to lock yet. */
  name(name: string): Promise<void>;
  /** Locks a name beside others that do so; whoever takes it with `name` waits for all of them. */
  sharedName(name: string): Promise<void>;
}

/** For reads outside of a transaction, and for a database of one process. */
export const noLocking: Locking = {
  rows: (query) => query,
  sharedRows: (query) => query,
  freeRows: (query) => query,
  name: async () => undefined,
  sharedName: async () => undefined,
};

/** How a database numbers the changes of instances and volumes: see queries/changes.ts. */
export interface ChangeNumbers {
  /** The number of what a transaction writes for an account. */
  next(accountId: unknown): SQL;
  /**
   * What the statement sees, in the form of `pg_current_snapshot()`: `first:end:open,open…`. It sees each committed
   * change with a number below `end`, except those of the open transactions.
   */
  snapshot(accountId: unknown): SQL;
  /** A text that differs after a restore. */
  epoch: SQL;
  /** Whether a number is in a list. Absent: transactions never overlap, so none is ever open. */
  isAmong?(column: SQL, list: unknown): SQL;
  /** A condition that leaves out numbers which a restored row has from another server. Absent: there are none. */
  isBelowEnd?(column: SQL): SQL;
  /** Keeps numbers from being given out again after the rows that had them are pruned. Absent: that cannot happen. */
  keepAbove?(connection: Pick<Connection, 'db' | 'tables'>, number: number): Promise<void>;
}

/** What the queries of both stores run on. It lasts as long as what it connects to: statements are prepared on it. */
export interface Connection<Schema = Tables> {
  db: Db;
  tables: Schema;
  locking: Locking;
  /** A text with A to Z in lower case, and no other letter: alike in each database, whatever its locale. */
  lower(text: Column | SQL): SQL;
  changes: ChangeNumbers;
  /**
   * Awaits a write whose answer nobody needs. A transaction of PostgreSQL does not wait for it: it is sent together with
   * what follows, and if it fails, so does the transaction.
   */
  write(sent: Promise<unknown>): Promise<void>;
  /** For a write outside of a transaction: without it nothing is changed. */
  onlyIf?: SQL;
}

/** Outside of a transaction, and where there is no round trip. */
export async function awaitWrite(sent: Promise<unknown>): Promise<void> {
  await sent;
}

/** Whether a text has another one anywhere, with A to Z of any case; what is looked for has no wildcards. */
export function contains({ lower }: Pick<Connection, 'lower'>, text: Column | SQL, part: string): SQL {
  const folded = part.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  return sql`${lower(text)} LIKE ${`%${folded.replace(/[\\%_]/g, '\\$&')}%`} ESCAPE '\\'`;
}
