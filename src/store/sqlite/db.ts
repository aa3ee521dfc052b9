import Database from 'better-sqlite3';
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3';
import { StoreUnavailable } from '../../orchestrator/ports/store.ts';

/** One connection, seen through drizzle. */
export type Db = BetterSQLite3Database;

export function toDb(connection: Database.Database): Db {
  return drizzle(connection);
}

/** The core knows one storage failure; what SQLite said is its cause, for the log. */
export function fromSqlite(error: unknown): unknown {
  const sqliteError = findSqliteError(error);
  if (sqliteError === undefined || sqliteError.code.startsWith('SQLITE_CONSTRAINT')) return error;
  return new StoreUnavailable(`${sqliteError.code}: ${sqliteError.message}`, { cause: error });
}

function findSqliteError(error: unknown): { code: string; message: string } | undefined {
  if (error instanceof Database.SqliteError) return error;
  if (error instanceof TypeError && error.message === 'The database connection is not open')
    return { code: 'closed', message: error.message };
  return error instanceof Error && error.cause !== undefined ? findSqliteError(error.cause) : undefined;
}
