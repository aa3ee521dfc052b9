import type Database from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { type Connection, type Db, noLocking } from '../queries/connection.ts';

/** Tables whose rows have the same types, which is half of what the cast below stands on. */
type SameRows<Schema> = {
  [Name in keyof Schema]: Schema[Name] extends { $inferSelect: infer Row } ? { $inferSelect: Row } : never;
};

/**
 * A SQLite connection as the shared queries see it. What they use of drizzle's PostgreSQL builders, its SQLite
 * builders have too, under the same names, and awaited they run and give the same rows: the shared store suite
 * shows it. One process writes the file, one transaction after another, so nothing is locked.
 */
export function toConnection<Schema>(
  connection: Database.Database,
  tables: SameRows<Schema>,
): Connection<Schema> {
  return {
    db: drizzle(connection) as unknown as Db,
    tables: tables as unknown as Schema,
    locking: noLocking,
    isLasting: true,
  };
}
