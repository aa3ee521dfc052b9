import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { APPLICATION_ID, checkDatabase, isThere } from './check-database.ts';
import { DatabaseRefused, fileProblem, refusalOf } from './database-refused.ts';

const migrationsFolder = new URL('../migrations/', import.meta.url);

interface Migration {
  version: number;
  sql: string;
}

/** The migrations in order; `sqlite-0003-….sql` brings a database to version 3. */
export function readMigrations(): Migration[] {
  return readdirSync(migrationsFolder)
    .filter((file) => /^sqlite-\d{4}-.*\.sql$/.test(file))
    .sort()
    .map((file) => ({
      version: Number(file.slice(7, 11)),
      sql: readFileSync(new URL(file, migrationsFolder), 'utf8'),
    }));
}

export interface OpenOptions {
  migrations?: readonly Migration[];
  /** Called when the file is found sound or absent, before anything is written; a throw leaves all as it is. */
  beforeWriting?: () => void;
}

/**
 * Opens a SQLite file that survives power loss (`journal_mode=WAL`, `synchronous=FULL`), checks it, and
 * brings it to the newest version. Where there is none, it is made.
 *
 * @throws {DatabaseRefused} if the file is damaged, not Berth's, newer than this program, or unreadable; then
 *   nothing was changed.
 */
export function openDatabase(
  path: string,
  { migrations = readMigrations(), beforeWriting = () => undefined }: OpenOptions = {},
): Database.Database {
  const newest = migrations.at(-1)?.version ?? 0;
  let db: Database.Database | undefined;
  try {
    if (isThere(path)) db = connectSound(path, newest);
    else makeFolder(dirname(path), path);
    beforeWriting();
    if (db === undefined) {
      createDatabase(path, migrations);
      db = connectSound(path, newest);
    }
    setDurable(db);
    migrate(db, migrations);
    return db;
  } catch (error) {
    db?.close();
    throw refusalOf(error, path);
  }
}

/** A second connection to a file that is open already, for reads of what is committed. */
export function openReader(path: string): Database.Database {
  const db = new Database(path, { fileMustExist: true });
  setDurable(db);
  db.pragma('query_only = ON');
  return db;
}

/**
 * SQLite keeps WAL mode in the file but not `synchronous`: a connection to a WAL file starts at NORMAL,
 * with which a power cut loses what was promised. So both are set on every open.
 */
function setDurable(db: Database.Database): void {
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  // What is no longer stored, cloud_init above all, is overwritten and not left in free pages.
  db.pragma('secure_delete = ON');
  db.pragma('busy_timeout = 5000');
}

function connectSound(path: string, newest: number): Database.Database {
  const db = new Database(path, { fileMustExist: true });
  try {
    checkDatabase(db, path, newest);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function makeFolder(folder: string, path: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new DatabaseRefused(
      `The folder ${folder} of the database ${path} cannot be made (${fileProblem(error)}): give --database a writable place.`,
      { cause: error },
    );
  }
}

/**
 * Makes the file under another name and puts it in its place whole, so that a file at `path` is never an
 * unfinished one, whenever the process ends. Of several processes at once one wins, and all open what it made.
 */
function createDatabase(path: string, migrations: readonly Migration[]): void {
  const draft = `${path}.new-${process.pid}`;
  removeDraft(draft);
  try {
    const db = new Database(draft);
    try {
      setDurable(db);
      migrate(db, migrations);
    } finally {
      db.close();
    }
    putInPlace(draft, path);
    syncFolder(dirname(path));
  } finally {
    removeDraft(draft);
  }
}

/** Gives the draft its name unless another process was first. */
function putInPlace(draft: string, path: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    // Some file systems have no hard links.
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
    if (!existsSync(path)) renameSync(draft, path);
  }
}

function removeDraft(draft: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${draft}${suffix}`, { force: true });
}

/** Makes the new name durable, as SQLite does for the content. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Forwards only, each step and its version number in one transaction, one process at a time. */
function migrate(db: Database.Database, migrations: readonly Migration[]): void {
  const step = db.transaction(({ version, sql }: Migration) => {
    if (Number(db.pragma('user_version', { simple: true })) >= version) return;
    db.exec(sql);
    db.pragma(`user_version = ${version}`);
    db.pragma(`application_id = ${APPLICATION_ID}`);
  });
  for (const migration of migrations) step.immediate(migration);
}
