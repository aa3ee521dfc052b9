import type Database from 'better-sqlite3';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { assertBindable } from '../bindable.ts';
import { awaitWrite, type Connection, type Db, noLocking } from '../queries/connection.ts';

/**
 * A SQLite connection for the shared queries. The methods that they use exist on drizzle's SQLite builders under the
 * same names and return the same rows, as the shared store suite tests. One process writes the file, one transaction
 * after another, so it needs no locks.
 */
export function toConnection<Schema>(connection: Database.Database, tables: Schema): Connection<Schema> {
  return {
    db: drizzle(compilingOnce(connection)) as unknown as Db,
    ...tables,
    locking: noLocking,
    lower: (text) => sql`lower(${text})`,
    write: awaitWrite,
  };
}

/** A statement that refuses the values that PostgreSQL refuses. */
function asserting(statement: Database.Statement): Database.Statement {
  for (const method of ['run', 'get', 'all'] as const) {
    const execute = statement[method].bind(statement) as (...values: unknown[]) => never;
    statement[method] = (...values: unknown[]) => {
      assertBindable(values, statement.readonly);
      return execute(...values);
    };
  }
  return statement;
}

/** A placeholder in a comparison, also of row values, or in LIMIT. */
const COMPARED = /(?<=[=<>] |limit |> \((?:\?, )*)\?/g;

/** The statements of a connection that are kept. One has some 10 KB. */
const KEPT = 500;

/**
 * Compiles a query once, and keeps what was last used: compiling takes as long as running. If a query orders rows and
 * compares a column with a bare `?`, SQLite recompiles it for every value: a query of 5 µs takes 100. `+?` has the same
 * value and avoids that.
 */
function compilingOnce(connection: Database.Database): Database.Database {
  const prepare = connection.prepare.bind(connection);
  const kept = new Map<string, Database.Statement>();
  connection.prepare = ((source: string) => {
    const statement = kept.get(source) ?? asserting(prepare(source.replace(COMPARED, '+?')));
    kept.delete(source);
    kept.set(source, statement);
    const [oldest] = kept.keys();
    if (kept.size > KEPT && oldest !== undefined) kept.delete(oldest);
    return statement;
  }) as typeof connection.prepare;
  return connection;
}
