import { chmodSync, closeSync, lstatSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { DatabaseRefused } from '../database-refused.ts';
import { readMigrations } from '../migrations.ts';
import { isBackup } from './backup-mark.ts';
import { checkIdentity, findDamage, isThere, pragmaNumber } from './check-database.ts';
import { putInPlace, removeDraft, sync } from './database-file.ts';
import { BACKUP_ID } from './database-format.ts';
import { damaged, fileProblem, refusalOf } from './errors.ts';
import { orchestratorFormat } from './orchestrator-format.ts';

/** The file holds the digests of keys and the contents of cloud_init. */
export const MODE = 0o600;
const ALL_PAGES = 0x7fff_ffff;
/** The schema version that introduced the table of marks. */
const MARKS_SINCE = 2;

/**
 * Copies a database, also while another process writes to it: the copy is a consistent snapshot. It is written under
 * another name, checked, and then renamed; a failure leaves nothing behind. The copy is marked as a backup taken at
 * `takenAt`, in milliseconds since the epoch.
 *
 * @throws {DatabaseRefused} if the database cannot be copied, the copy not be written, or there is a file at `target`.
 */
export async function backUpDatabase(
  path: string,
  target: string,
  takenAt: number,
): Promise<{ bytes: number }> {
  const source = openSource(path);
  const draft = `${target}.part-${process.pid}`;
  try {
    if (lstatSync(target, { throwIfNoEntry: false }) !== undefined) throw taken(target);
    try {
      closeSync(openSync(draft, 'wx', MODE));
      await source.backup(draft, { progress: () => ALL_PAGES });
      finishCopy(draft, path, takenAt);
      if (!putInPlace(draft, target)) throw taken(target);
      sync(dirname(target));
      return { bytes: statSync(target).size };
    } finally {
      removeDraft(draft);
    }
  } catch (error) {
    throw refusalOfCopy(error, path, target);
  } finally {
    source.close();
  }
}

/** Opens the database as it is: one of an earlier version is not migrated before it is backed up. */
function openSource(path: string): Database.Database {
  let source: Database.Database | undefined;
  try {
    if (!isThere(path)) throw new DatabaseRefused(`There is no database ${path}: give --database.`);
    if (isBackup(path))
      throw new DatabaseRefused(`${path} is a backup that nothing was started from: copy the file itself.`);
    source = new Database(path, { fileMustExist: true });
    source.pragma('busy_timeout = 5000');
    checkIdentity(source, path, readMigrations('sqlite').at(-1)?.version ?? 0, orchestratorFormat);
    return source;
  } catch (error) {
    source?.close();
    throw refusalOf(error, path);
  }
}

/**
 * Makes a copy a backup of the database at `path`: checked, by itself, and marked as taken then; undefined: it has that
 * mark, or is older than marks.
 *
 * @throws {DatabaseRefused} if it is damaged
 */
export function finishCopy(draft: string, path: string, takenAt: number | undefined): void {
  const copy = new Database(draft, { fileMustExist: true });
  try {
    // A file by itself: with nothing beside it that would have to be moved along.
    copy.pragma('journal_mode = DELETE');
    copy.pragma('synchronous = FULL');
    const version = pragmaNumber(copy, 'user_version');
    const damage = findDamage(copy, draft, version, orchestratorFormat);
    if (damage !== undefined) throw damaged(path, damage);
    copy.transaction(() => {
      if (version >= MARKS_SINCE && takenAt !== undefined)
        copy.prepare("INSERT OR REPLACE INTO marks (name, at) VALUES ('restored_from', ?)").run(takenAt);
      copy.pragma(`application_id = ${BACKUP_ID}`);
    })();
  } finally {
    copy.close();
  }
  chmodSync(draft, MODE);
  sync(draft);
}

function taken(target: string): DatabaseRefused {
  return new DatabaseRefused(`There is a file ${target} already: give the backup another name.`);
}

function refusalOfCopy(error: unknown, path: string, target: string): Error {
  if (error instanceof DatabaseRefused) return error;
  if (error instanceof Database.SqliteError) {
    const { code, message } = error;
    if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) return damaged(path, message, error);
    return notWritten(target, code === 'SQLITE_FULL' ? 'the disk is full' : message, error);
  }
  if (error instanceof Error && 'syscall' in error) {
    const { code } = error as NodeJS.ErrnoException;
    return notWritten(target, code === 'ENOENT' ? 'there is no such folder' : fileProblem(error), error);
  }
  return error instanceof Error ? error : new Error(String(error));
}

function notWritten(target: string, problem: string, cause: unknown): DatabaseRefused {
  return new DatabaseRefused(
    `The backup ${target} cannot be written (${problem}): give a place with room where this user may write; nothing was left there.`,
    { cause },
  );
}
