import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { fileProblem } from '../../ports/errors.ts';
import { DatabaseRefused } from '../database-refused.ts';
import { readMigrations } from '../migrations.ts';
import { finishCopy } from './backup.ts';
import { isBackup } from './backup-mark.ts';
import { checkIdentity, isThere } from './check-database.ts';
import { MODE } from './copy-database.ts';
import { giveToOwnerOf, removeDraft, sync } from './database-file.ts';
import { refusalOf } from './errors.ts';
import { orchestratorFormat } from './orchestrator-format.ts';

export interface Restored {
  /** When the backup was taken, in milliseconds since the epoch. */
  takenAt: number;
  /** The new path of the previous database. Null: there was none. */
  before: string | null;
}

/**
 * Replaces a database that no process uses by a copy of a backup, and keeps the old one. A copy that `berth backup` did
 * not make counts as taken when last written. If the process ends early, the database is the old one, the restored one,
 * or refused at the next start.
 * @param stamp the end of the old database's new name
 * @throws {DatabaseRefused} if the backup is unreadable, damaged or not this program's; nothing was changed
 */
export function restoreDatabase(
  backup: string,
  path: string,
  stamp: string,
  by: { actor: string; at: number },
): Restored {
  const draft = `${path}.restore-${process.pid}`;
  try {
    if (!isThere(backup)) throw new DatabaseRefused(`There is no backup ${backup}.`);
    assertComplete(backup);
    closeSync(openSync(draft, 'wx', MODE));
    copyFileSync(backup, draft);
    chmodSync(draft, MODE);
    const takenAt = prepareCopy(backup, draft, by);
    sync(draft);
    giveToOwnerOf(isThere(path) ? path : dirname(path), draft);
    const before = moveAside(path, stamp);
    renameSync(draft, path);
    sync(dirname(path));
    return { takenAt, before };
  } catch (error) {
    throw toRefusal(error, backup, path);
  } finally {
    removeDraft(draft);
  }
}

/** @throws {DatabaseRefused} if part of it is in a journal next to it */
function assertComplete(backup: string): void {
  const journal = ['-wal', '-journal']
    .map((suffix) => `${backup}${suffix}`)
    .find((file) => existsSync(file) && statSync(file).size > 0);
  if (journal !== undefined)
    throw new DatabaseRefused(
      `${backup} is not a complete backup: ${journal} next to it holds a part of it, and it may be in use. Make a backup with \`berth backup\`.`,
    );
}

/**
 * Checks a whole copy and marks it, so that the first start compares it with the platform. Returns when it was taken.
 */
function prepareCopy(backup: string, draft: string, by: { actor: string; at: number }): number {
  const copy = new Database(draft, { fileMustExist: true });
  try {
    checkIdentity(copy, backup, readMigrations('sqlite').at(-1)?.version ?? 0, orchestratorFormat);
    const takenAt = isBackup(backup) ? readMark(copy) : Math.round(statSync(backup).mtimeMs);
    writeAudit(copy, backup, takenAt, by);
    copy.close();
    finishCopy(draft, backup, takenAt);
    return takenAt;
  } finally {
    copy.close();
  }
}

function writeAudit(
  copy: Database.Database,
  backup: string,
  takenAt: number,
  { actor, at }: { actor: string; at: number },
): void {
  const detail = { taken_at: new Date(takenAt).toISOString() };
  copy
    .prepare(
      "INSERT INTO audit (at, actor, source, action, subject, detail, outcome) VALUES (?, ?, 'cli', 'database.restore', ?, ?, 'done')",
    )
    .run(at, actor, backup, JSON.stringify(detail));
}

function readMark(copy: Database.Database): number {
  return Number(copy.prepare("SELECT at FROM marks WHERE name = 'restored_from'").pluck().get());
}

/** Keeps the old database under another name, with its journal, which SQLite would write into the restored file. */
function moveAside(path: string, stamp: string): string | null {
  if (!existsSync(path)) return null;
  emptyJournal(path);
  const before = `${path}.before-restore-${stamp}`;
  // The database stays in place until the restored one replaces it, so a server that starts meanwhile cannot create a
  // new one.
  keepAs(path, before);
  for (const suffix of ['-wal', '-shm', '-journal'])
    if (existsSync(`${path}${suffix}`)) renameSync(`${path}${suffix}`, `${before}${suffix}`);
  return before;
}

const MAGIC = 'SQLite format 3\0';

/**
 * Empties the journal, so that the file is self-contained. If the file is no longer a database, its journal is kept:
 * SQLite would delete it.
 */
function emptyJournal(path: string): void {
  if (readHead(path, MAGIC.length) !== MAGIC) return;
  try {
    const old = new Database(path, { fileMustExist: true });
    try {
      old.pragma('wal_checkpoint(TRUNCATE)');
    } finally {
      old.close();
    }
  } catch {
    // Damage does not matter here: the file is being replaced.
  }
}

function readHead(path: string, length: number): string {
  const bytes = Buffer.alloc(length);
  const descriptor = openSync(path, 'r');
  try {
    readSync(descriptor, bytes, 0, length, 0);
  } finally {
    closeSync(descriptor);
  }
  return bytes.toString('latin1');
}

function keepAs(path: string, before: string): void {
  try {
    linkSync(path, before);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Some file systems have no hard links.
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
    copyFileSync(path, before);
    sync(before);
  }
}

function toRefusal(error: unknown, backup: string, path: string): Error {
  if (error instanceof DatabaseRefused) return asBackup(error, backup);
  if (error instanceof Error && 'syscall' in error)
    return new DatabaseRefused(
      `The backup ${backup} cannot be put in the place of ${path} (${fileProblem(error)}): give a place with room where this user may write; the database is as it was.`,
      { cause: error },
    );
  return asBackup(refusalOf(error, backup), backup);
}

/** Rewords the refusal of a database for a backup: another backup is needed. */
function asBackup(error: Error, backup: string): Error {
  const damage = error.message.replace(`The database ${backup} is`, `The backup ${backup} is`);
  const advice = damage.replace(
    /: restore it from a backup(; nothing was changed|, or delete it to start with nothing)\./,
    ': take another one; the database is as it was.',
  );
  return advice === error.message ? error : new DatabaseRefused(advice, { cause: error });
}
