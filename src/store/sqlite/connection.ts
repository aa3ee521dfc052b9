import type Database from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { type Connection, type Db, noLocking, type Tables } from '../queries/connection.ts';
import * as schema from './schema.ts';

/** The rows of both schemas have the same types, which is half of what the cast below stands on. */
const sameRows: { [Name in keyof Tables]: { $inferSelect: Tables[Name]['$inferSelect'] } } = schema;

/**
 * A SQLite connection as the shared queries see it. What they use of drizzle's PostgreSQL builders, its SQLite
 * builders have too, under the same names, and awaited they run and give the same rows: the shared store suite
 * shows it. One process writes the file, one transaction after another, so nothing is locked.
 */
export function toConnection(connection: Database.Database): Connection {
  return {
    db: drizzle(connection) as unknown as Db,
    tables: sameRows as unknown as Tables,
    locking: noLocking,
    isLasting: true,
  };
}
