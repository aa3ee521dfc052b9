import { closeSync, openSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { DatabaseRefused } from '../database-refused.ts';
import { type Migration, readMigrations } from '../migrations.ts';
import { checkIdentity, findDamage, isThere } from './check-database.ts';
import type { DatabaseFormat } from './database-format.ts';
import { damaged, refusalOf } from './errors.ts';

/** Only the owner may read the file, because it has the digests of keys and the contents of cloud_init. */
export const MODE = 0o600;
const ALL_PAGES = 0x7fff_ffff;

/**
 * Opens a database of any version unchanged, even while a server uses it.
 * @throws {DatabaseRefused | SqliteError}
 */
export function openUnchanged(
  path: string,
  format: DatabaseFormat,
  migrations: readonly Migration[] = readMigrations(format.migrations),
): { source: Database.Database; version: number } {
  if (!isThere(path)) throw new DatabaseRefused(`There is no database ${path}: give --database.`);
  const source = new Database(path, { fileMustExist: true });
  try {
    source.pragma('query_only = ON');
    source.pragma('busy_timeout = 5000');
    const newest = migrations.at(-1)?.version ?? 0;
    return { source, version: checkIdentity(source, path, newest, format) };
  } catch (error) {
    source.close();
    throw error;
  }
}

/** Writes a consistent snapshot to a new file. */
export async function copyTo(source: Database.Database, draft: string): Promise<void> {
  closeSync(openSync(draft, 'wx', MODE));
  await source.backup(draft, { progress: () => ALL_PAGES });
}

/**
 * Checks a whole file for damage, even while a server uses it. Only reads. It takes some seconds for each 1,000,000
 * rows. Returns the size of the file in bytes.
 * @throws {DatabaseRefused} if the file is damaged, or not a database of this program.
 */
export function checkDatabaseFile(path: string, format: DatabaseFormat): number {
  let db: Database.Database | undefined;
  try {
    const { source, version } = openUnchanged(path, format);
    db = source;
    const damage = findDamage(db, path, version, format);
    if (damage !== undefined) throw damaged(path, damage);
    return statSync(path).size;
  } catch (error) {
    throw refusalOf(error, path);
  } finally {
    db?.close();
  }
}
