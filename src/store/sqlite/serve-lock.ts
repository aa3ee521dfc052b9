import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { type Command, DatabaseRefused } from '../database-refused.ts';
import { giveToOwnerOf } from './database-file.ts';

/**
 * Makes this process the only one that serves a database file. The operating system releases the lock when the process
 * ends, however it ends. Returns a function that releases it.
 * @throws {DatabaseRefused} if another process holds it.
 */
export function takeServeLock(databasePath: string, command: Command = 'berth serve'): () => void {
  const file = lockFileOf(databasePath);
  const lock = new Database(file);
  try {
    giveToOwnerOf(existsSync(databasePath) ? databasePath : dirname(file), file);
    lock.pragma('busy_timeout = 0');
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (!(error instanceof Database.SqliteError) || !error.code.startsWith('SQLITE_BUSY')) throw error;
    throw new DatabaseRefused(
      `Another \`${command}\` is running on the database ${databasePath}: stop it first, or give this one another --database.`,
      { cause: error },
    );
  }
  return () => lock.close();
}

/** Creates no file. @throws {DatabaseRefused} if another process serves the database. */
export function assertNotServed(databasePath: string, command: Command = 'berth serve'): void {
  if (existsSync(lockFileOf(databasePath))) takeServeLock(databasePath, command)();
}

/** The lock's path, which is the same for every link to the file. */
function lockFileOf(path: string): string {
  const folder = dirname(path);
  if (!existsSync(folder))
    throw new DatabaseRefused(`There is no folder ${folder} for the database: give another --database.`);
  const real = existsSync(path) ? realpathSync(path) : join(realpathSync(folder), basename(path));
  return `${real}.lock`;
}
