import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { DatabaseRefused } from '../database-refused.ts';
import { readMigrations } from '../migrations.ts';
import { checkDatabase, isThere } from './check-database.ts';
import type { DatabaseFormat } from './database-format.ts';
import { refusalOf } from './errors.ts';

/**
 * Checks a whole file for damage, even while a server uses it. Only reads. It takes some seconds for each 1,000,000
 * rows. Returns the size of the file in bytes.
 * @throws {DatabaseRefused} if the file is damaged, or not a database of this program.
 */
export function checkDatabaseFile(path: string, format: DatabaseFormat): number {
  let db: Database.Database | undefined;
  try {
    if (!isThere(path)) throw new DatabaseRefused(`There is no database ${path}: give --database.`);
    db = new Database(path, { fileMustExist: true });
    db.pragma('query_only = ON');
    db.pragma('busy_timeout = 5000');
    checkDatabase(db, path, readMigrations(format.migrations).at(-1)?.version ?? 0, format, 'full');
    return statSync(path).size;
  } catch (error) {
    throw refusalOf(error, path);
  } finally {
    db?.close();
  }
}
