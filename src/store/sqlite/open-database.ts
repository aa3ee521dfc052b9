import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';

/** Marks a file as Berth's ("Brth"), so that another program's database is never written to. */
const APPLICATION_ID = 0x42727468;
const migrationsFolder = new URL('../migrations/', import.meta.url);

/** Why a database cannot be opened, in one sentence with the remedy. Nothing was changed. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused';
}

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

/**
 * Opens a SQLite file that survives power loss (`journal_mode=WAL`, `synchronous=FULL`), checks it, and
 * brings it to the newest version.
 *
 * @throws {DatabaseRefused} if the file is damaged, not Berth's, newer than this program, or unreadable.
 */
export function openDatabase(path: string, migrations = readMigrations()): Database.Database {
  const db = connect(path);
  try {
    refuseForeign(db, path, migrations.at(-1)?.version ?? 0);
    setDurable(db);
    migrate(db, migrations);
    return db;
  } catch (error) {
    db.close();
    throw asRefusal(error, path);
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
  db.pragma('busy_timeout = 5000');
}

function connect(path: string): Database.Database {
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === 0)
    throw new DatabaseRefused(
      `The database ${path} is an empty file: restore it from a backup, or delete it to start with nothing.`,
    );
  makeFolder(dirname(path), path);
  try {
    return new Database(path);
  } catch (error) {
    throw asRefusal(error, path);
  }
}

function makeFolder(folder: string, path: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new DatabaseRefused(
      `The folder of the database ${path} cannot be made (${reason(error)}): give --database a writable place.`,
      { cause: error },
    );
  }
}

function refuseForeign(db: Database.Database, path: string, newest: number): void {
  const version = pragmaNumber(db, 'user_version');
  const isNew = version === 0 && db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get() === 0;
  if (isNew) return;
  if (pragmaNumber(db, 'application_id') !== APPLICATION_ID)
    throw new DatabaseRefused(`${path} is a database of another program: give --database another file.`);
  if (version > newest)
    throw new DatabaseRefused(
      `The database ${path} is newer (version ${version}) than this program (version ${newest}): run the Berth that wrote it, or a later one.`,
    );
  const damage = db.pragma('quick_check(1)', { simple: true });
  if (damage !== 'ok') throw new DatabaseRefused(damagedSentence(path, String(damage)));
}

/** Forwards only, each step and its version number in one transaction, one process at a time. */
function migrate(db: Database.Database, migrations: readonly Migration[]): void {
  const step = db.transaction(({ version, sql }: Migration) => {
    if (pragmaNumber(db, 'user_version') >= version) return;
    db.exec(sql);
    db.pragma(`user_version = ${version}`);
    db.pragma(`application_id = ${APPLICATION_ID}`);
  });
  for (const migration of migrations) step.immediate(migration);
}

function pragmaNumber(db: Database.Database, name: string): number {
  return Number(db.pragma(name, { simple: true }));
}

function asRefusal(error: unknown, path: string): Error {
  if (!(error instanceof Database.SqliteError))
    return error instanceof Error ? error : new Error(String(error));
  const { code, message } = error;
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT'))
    return new DatabaseRefused(damagedSentence(path, message), { cause: error });
  if (code === 'SQLITE_FULL')
    return new DatabaseRefused(`The disk of the database ${path} is full: make room and start again.`, {
      cause: error,
    });
  if (code.startsWith('SQLITE_BUSY'))
    return new DatabaseRefused(
      `The database ${path} is locked by another process: stop it and start again.`,
      { cause: error },
    );
  return new DatabaseRefused(
    `The database ${path} cannot be opened (${message}): check that the file and its folder are readable and writable.`,
    {
      cause: error,
    },
  );
}

function damagedSentence(path: string, what: string): string {
  return `The database ${path} is damaged (${what}): restore it from a backup; nothing was changed.`;
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
