import type Database from 'better-sqlite3';
import { fileProblem } from '../../ports/errors.ts';
import { DatabaseRefused } from '../database-refused.ts';
import type { Migration } from '../migrations.ts';
import { copyTo, openUnchanged } from './copy-database.ts';
import { removeDraft } from './database-file.ts';
import type { DatabaseFormat } from './database-format.ts';
import { refusalOf } from './errors.ts';
import { openDatabase } from './open-database.ts';

/**
 * Migrates a copy of the database, checks it completely and removes it, even while a server uses the database. Returns
 * the current version of the database.
 * @throws {DatabaseRefused} if a server would refuse to start, or a migration fails; nothing was changed
 */
export async function tryMigrations(
  path: string,
  format: DatabaseFormat,
  migrations: readonly Migration[],
): Promise<number> {
  const draft = `${path}.upgrade-${process.pid}`;
  let source: Database.Database | undefined;
  try {
    const opened = openUnchanged(path, format, migrations);
    source = opened.source;
    await copyTo(source, draft);
    openDatabase(draft, { migrations }, format).close();
    return opened.version;
  } catch (error) {
    if (error instanceof Error && 'syscall' in error)
      throw new DatabaseRefused(
        `A copy of ${path} for the trial upgrade cannot be created next to it (${fileProblem(error)}): free some space, or try the upgrade on a backup elsewhere.`,
        { cause: error },
      );
    throw refusalOf(error, path);
  } finally {
    source?.close();
    removeDraft(draft);
  }
}
