import Database from 'better-sqlite3';
import { fileProblem, StoreUnavailable } from '../../ports/errors.ts';
import { DatabaseRefused } from '../database-refused.ts';

/** The statement or its values are wrong: a bug, as of PostgreSQL. */
const BUG = /^SQLITE_(CONSTRAINT|MISMATCH|RANGE|TOOBIG)/;

/**
 * Translates an error of SQLite into `StoreUnavailable`, with the original as its cause for the log. A bug stays an error
 * of SQLite. drizzle's own error is left out: its message contains the statement's parameters, which may be secrets.
 */
export function fromSqlite(error: unknown): unknown {
  const sqliteError = findSqliteError(error);
  if (sqliteError === undefined) return error;
  const code = sqliteError instanceof Database.SqliteError ? sqliteError.code : 'closed';
  if (BUG.test(code) || sqliteError.message.endsWith(': syntax error')) return sqliteError;
  return new StoreUnavailable(`${code}: ${sqliteError.message}`, { cause: sqliteError });
}

/** Whether SQLite reported that the file is damaged. */
export function tellsDamage(error: unknown): boolean {
  const found = findSqliteError(error);
  return found instanceof Database.SqliteError && isDamage(found.code);
}

const isDamage = (code: string): boolean => code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT');

function findSqliteError(error: unknown): Error | undefined {
  if (error instanceof Database.SqliteError) return error;
  if (error instanceof TypeError && error.message === 'The database connection is not open') return error;
  return error instanceof Error && error.cause !== undefined ? findSqliteError(error.cause) : undefined;
}

export function damaged(path: string, what: string, cause?: unknown): DatabaseRefused {
  const plain = what
    .replace(/^\*\*\* in database \w+ \*\*\*\s*/, '')
    .replace(/\s+/g, ' ')
    .trim();
  return new DatabaseRefused(
    `The database ${path} is damaged (${plain}): restore it from a backup; nothing was changed.`,
    { cause },
  );
}

/**
 * Converts an error while opening a database into a `DatabaseRefused`, if the file is the cause and not the program.
 */
export function refusalOf(error: unknown, path: string): Error {
  if (error instanceof DatabaseRefused) return error;
  if (error instanceof Database.SqliteError) return fromSqliteError(error, path);
  if (error instanceof Error && 'syscall' in error)
    return new DatabaseRefused(cannotOpen(path, fileProblem(error)), { cause: error });
  return error instanceof Error ? error : new Error(String(error));
}

function fromSqliteError(error: InstanceType<typeof Database.SqliteError>, path: string): Error {
  const { code, message } = error;
  const cause = { cause: error };
  if (isDamage(code) || message === 'unsupported file format') return damaged(path, message, error);
  if (code === 'SQLITE_FULL')
    return new DatabaseRefused(
      `The disk of the database ${path} is full: free some space and start again.`,
      cause,
    );
  if (code.startsWith('SQLITE_BUSY'))
    return new DatabaseRefused(
      `The database ${path} is locked by another process, such as a suspended server: end it and try again.`,
      cause,
    );
  if (code.startsWith('SQLITE_IOERR'))
    return new DatabaseRefused(cannotOpen(path, message, ', and that its disk has free space'), cause);
  if (/^SQLITE_(CANTOPEN|READONLY|PERM|AUTH)/.test(code))
    return new DatabaseRefused(cannotOpen(path, message), cause);
  return error;
}

function cannotOpen(path: string, problem: string, orFull = ''): string {
  return `The database ${path} cannot be opened (${problem}): check that this user may read and write the file and its folder${orFull}.`;
}
