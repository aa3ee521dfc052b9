import { chmodSync, lstatSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { fileProblem } from '../../ports/errors.ts';
import { DatabaseRefused } from '../database-refused.ts';
import { isBackup } from './backup-mark.ts';
import { findDamage, isThere, pragmaNumber } from './check-database.ts';
import { copyTo, MODE, openUnchanged } from './copy-database.ts';
import { putInPlace, removeDraft, sync } from './database-file.ts';
import { BACKUP_ID, type DatabaseFormat } from './database-format.ts';
import { damaged, refusalOf } from './errors.ts';
import { orchestratorFormat } from './orchestrator-format.ts';

/**
 * Copies a database, even while another process writes to it. The copy is a consistent snapshot; the orchestrator's is
 * marked as a backup of `takenAt`, in milliseconds since the epoch. It is checked before it gets its name; a failure
 * leaves no file.
 * @throws {DatabaseRefused} if the database cannot be copied, the copy cannot be written, or `target` exists
 */
export async function backUpDatabase(
  path: string,
  target: string,
  takenAt: number,
  format: DatabaseFormat = orchestratorFormat,
): Promise<{ bytes: number }> {
  const source = openSource(path, format);
  const draft = `${target}.part-${process.pid}`;
  try {
    if (lstatSync(target, { throwIfNoEntry: false }) !== undefined) throw taken(target);
    try {
      await copyTo(source, draft);
      finishCopy(draft, path, takenAt, format);
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

/** Opens the database unchanged: an earlier version is not migrated before the backup. */
function openSource(path: string, format: DatabaseFormat): Database.Database {
  try {
    if (isThere(path) && isBackup(path))
      throw new DatabaseRefused(`${path} is a backup that was never started from: copy the file itself.`);
    return openUnchanged(path, format).source;
  } catch (error) {
    throw refusalOf(error, path);
  }
}

/**
 * Turns a copy of the database at `path` into a backup: checked, self-contained, and marked with `takenAt` if the first
 * start from it has something to compare.
 * @throws {DatabaseRefused} if it is damaged
 */
export function finishCopy(
  draft: string,
  path: string,
  takenAt: number,
  format: DatabaseFormat = orchestratorFormat,
): void {
  const copy = new Database(draft, { fileMustExist: true });
  try {
    // The file becomes self-contained: no other file must be moved with it.
    copy.pragma('journal_mode = DELETE');
    copy.pragma('synchronous = FULL');
    const version = pragmaNumber(copy, 'user_version');
    const damage = findDamage(copy, draft, version, format);
    if (damage !== undefined) throw damaged(path, damage);
    if (format.hasBackups) markBackup(copy, takenAt);
  } finally {
    copy.close();
  }
  chmodSync(draft, MODE);
  sync(draft);
}

function markBackup(copy: Database.Database, takenAt: number): void {
  copy.transaction(() => {
    copy.prepare("INSERT OR REPLACE INTO marks (name, at) VALUES ('restored_from', ?)").run(takenAt);
    copy.pragma(`application_id = ${BACKUP_ID}`);
  })();
}

function taken(target: string): DatabaseRefused {
  return new DatabaseRefused(`The file ${target} already exists: give the backup another name.`);
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
    `The backup ${target} cannot be written (${problem}): choose a writable place with enough space; no partial file was left.`,
    { cause },
  );
}
