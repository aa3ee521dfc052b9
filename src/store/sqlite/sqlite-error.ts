import Database from 'better-sqlite3';
import { StoreUnavailable } from '../../ports/store-unavailable.ts';

/**
 * The core knows one storage failure; what SQLite said is its cause, for the log. What drizzle makes of it is
 * left out: its message has the parameters of the statement, which may be secrets.
 */
export function fromSqlite(error: unknown): unknown {
  const sqliteError = findSqliteError(error);
  if (sqliteError === undefined) return error;
  const code = sqliteError instanceof Database.SqliteError ? sqliteError.code : 'closed';
  if (code.startsWith('SQLITE_CONSTRAINT')) return sqliteError;
  return new StoreUnavailable(`${code}: ${sqliteError.message}`, { cause: sqliteError });
}

function findSqliteError(error: unknown): Error | undefined {
  if (error instanceof Database.SqliteError) return error;
  if (error instanceof TypeError && error.message === 'The database connection is not open') return error;
  return error instanceof Error && error.cause !== undefined ? findSqliteError(error.cause) : undefined;
}
