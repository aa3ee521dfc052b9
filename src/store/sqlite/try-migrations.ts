import { closeSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import { DatabaseRefused } from '../database-refused.ts';
import { readMigrations } from '../migrations.ts';
import { MODE } from './backup.ts';
import { checkIdentity, isThere } from './check-database.ts';
import { removeDraft } from './database-file.ts';
import type { DatabaseFormat } from './database-format.ts';
import { fileProblem, refusalOf } from './errors.ts';
import { openDatabase } from './open-database.ts';

const ALL_PAGES = 0x7fff_ffff;

/**
 * Migrates a copy of the database, checks all of it and removes it; also while a server uses the database. Returns the
 * version that the database has.
 *
 * @throws {DatabaseRefused} if a start would be refused, or a migration fails; nothing was changed
 */
export async function tryMigrations(path: string, format: DatabaseFormat): Promise<number> {
  const draft = `${path}.upgrade-${process.pid}`;
  let source: Database.Database | undefined;
  try {
    if (!isThere(path)) throw new DatabaseRefused(`There is no database ${path}: give --database.`);
    source = new Database(path, { fileMustExist: true });
    source.pragma('busy_timeout = 5000');
    const version = checkIdentity(
      source,
      path,
      readMigrations(format.migrations).at(-1)?.version ?? 0,
      format,
    );
    closeSync(openSync(draft, 'wx', MODE));
    await source.backup(draft, { progress: () => ALL_PAGES });
    openDatabase(draft, {}, format).close();
    return version;
  } catch (error) {
    if (error instanceof Error && 'syscall' in error)
      throw new DatabaseRefused(
        `A copy of ${path} cannot be made beside it to try the upgrade on (${fileProblem(error)}): make room, or try it on a backup elsewhere.`,
        { cause: error },
      );
    throw refusalOf(error, path);
  } finally {
    source?.close();
    removeDraft(draft);
  }
}
