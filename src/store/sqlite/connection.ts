import type Database from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { type Connection, type Db, noLocking } from '../queries/connection.ts';

/**
 * A SQLite connection as the shared queries see it. What they use of drizzle's PostgreSQL builders, its SQLite
 * builders have too, under the same names, and awaited they run and give the same rows: the shared store suite
 * shows it. One process writes the file, one transaction after another, so nothing is locked.
 */
export function toConnection<Schema>(connection: Database.Database, tables: Schema): Connection<Schema> {
  return {
    db: drizzle(compilingOnce(connection)) as unknown as Db,
    tables,
    locking: noLocking,
  };
}

/** A value that something is compared with, or that says how many rows are wanted. */
const COMPARED = /(?<=[=<>] |limit )\?/g;

/**
 * Where rows are ordered, and a column is compared with a bare `?`, SQLite compiles the statement anew for every value:
 * a query of 5 µs takes 100. `+?` is the same value, and SQLite does not look into it.
 */
function compilingOnce(connection: Database.Database): Database.Database {
  const prepare = connection.prepare.bind(connection);
  connection.prepare = ((source: string) =>
    prepare(source.replace(COMPARED, '+?'))) as typeof connection.prepare;
  return connection;
}
