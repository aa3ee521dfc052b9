import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { fileProblem } from '../../ports/errors.ts';
import { DatabaseRefused, refusedVersion } from '../database-refused.ts';
import { type Migration, readMigrations } from '../migrations.ts';
import { assertAlone, isBackup, makeDatabase } from './backup-mark.ts';
import { checkDatabase, isThere } from './check-database.ts';
import { readLastClose } from './close-mark.ts';
import { putInPlace, removeDraft, sync } from './database-file.ts';
import type { DatabaseFormat } from './database-format.ts';
import { refusalOf } from './errors.ts';
import type { OpenOptions } from './open-options.ts';
import { orchestratorFormat } from './orchestrator-format.ts';

/**
 * Opens a SQLite file that survives power loss (`journal_mode=WAL`, `synchronous=FULL`), and migrates it to the newest
 * version. Creates a missing file; a backup becomes the database. Checks for damage unless it was closed cleanly
 * (`close-mark.ts`).
 * @throws {DatabaseRefused} if it is damaged, another program's, newer or unreadable; nothing was changed
 */
export function openDatabase(
  path: string,
  { migrations: given, beforeWriting = () => undefined, mayMigrate = true, ...checking }: OpenOptions = {},
  format: DatabaseFormat = orchestratorFormat,
): Database.Database {
  const migrations = given ?? readMigrations(format.migrations);
  const newest = migrations.at(-1)?.version ?? 0;
  let db: Database.Database | undefined;
  try {
    const exists = isThere(path);
    const isRestored = exists && format.hasBackups && isBackup(path);
    if (isRestored) assertAlone(path);
    if (exists) db = connectSound(path, newest, format, checking);
    if (db !== undefined && !mayMigrate) assertNewest(db, path, newest, format);
    else makeFolder(dirname(path), path);
    beforeWriting();
    if (isRestored) {
      db?.close();
      makeDatabase(path);
      db = new Database(path, { fileMustExist: true });
    }
    if (db === undefined) {
      createDatabase(path, migrations, format);
      db = connectSound(path, newest, format);
    }
    setDurable(db);
    migrate(db, migrations, format);
    return db;
  } catch (error) {
    db?.close();
    throw refusalOf(error, path);
  }
}

/** Opens a second connection to an open file, for reads of committed data. */
export function openReader(path: string): Database.Database {
  const db = new Database(path, { fileMustExist: true });
  setDurable(db);
  db.pragma('query_only = ON');
  return db;
}

/**
 * SQLite stores WAL mode in the file but not `synchronous`: a connection to a WAL file starts at NORMAL, with which a
 * power cut loses committed transactions. So both are set on every open.
 */
function setDurable(db: Database.Database): void {
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  // Deleted data, above all cloud_init, is overwritten and does not remain in free pages.
  db.pragma('secure_delete = ON');
  db.pragma('busy_timeout = 5000');
}

/** Opens a file, and checks all of it for damage unless it was closed by Berth. */
function connectSound(
  path: string,
  newest: number,
  format: DatabaseFormat,
  { checksAfterCrash = true, onChecked }: Pick<OpenOptions, 'checksAfterCrash' | 'onChecked'> = {},
): Database.Database {
  // The mark is read before a connection creates a journal.
  const lastClose = readLastClose(path);
  const isBackupFile = format.hasBackups && isBackup(path);
  const isTrusted = !isBackupFile && (lastClose === 'closed' || (lastClose === 'open' && !checksAfterCrash));
  const begunAt = performance.now();
  const db = new Database(path, { fileMustExist: true });
  try {
    checkDatabase(db, path, newest, format, isTrusted);
    if (!isTrusted) onChecked?.(performance.now() - begunAt);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function assertNewest(
  db: Database.Database,
  path: string,
  newest: number,
  { command }: DatabaseFormat,
): void {
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version < newest) throw refusedVersion(path, version, newest, command);
}

function makeFolder(folder: string, path: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new DatabaseRefused(
      `The folder ${folder} of the database ${path} cannot be created (${fileProblem(error)}): give --database a writable place.`,
      { cause: error },
    );
  }
}

/**
 * Creates the file under another name and then renames it, so that a file at `path` is always complete, whenever the
 * process ends. Of several concurrent processes one wins, and all open its file.
 */
function createDatabase(path: string, migrations: readonly Migration[], format: DatabaseFormat): void {
  const draft = `${path}.new-${process.pid}`;
  removeDraft(draft);
  try {
    const db = new Database(draft);
    try {
      setDurable(db);
      migrate(db, migrations, format);
    } finally {
      db.close();
    }
    putInPlace(draft, path);
    sync(dirname(path));
  } finally {
    removeDraft(draft);
  }
}

/** Runs the missing migrations, each with its version number in one transaction, one process at a time. */
function migrate(
  db: Database.Database,
  migrations: readonly Migration[],
  { applicationId }: DatabaseFormat,
): void {
  const step = db.transaction(({ version, sql }: Migration) => {
    if (Number(db.pragma('user_version', { simple: true })) >= version) return;
    db.exec(sql);
    db.pragma(`user_version = ${version}`);
    db.pragma(`application_id = ${applicationId}`);
  });
  for (const migration of migrations) step.immediate(migration);
}
