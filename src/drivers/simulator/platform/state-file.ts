import { closeSync, existsSync, openSync, readSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { Fatal, InUse } from '../../../ports/errors.ts';

const SQLITE_MAGIC = 'SQLite format 3\0';
/** Offset of the application id in SQLite's file header: four bytes, big-endian. */
const APPLICATION_ID_OFFSET = 68;
/**
 * Application ids of Berth's databases ("Brth", "Brtm") and of a backup ("Brtb"), from
 * src/store/sqlite/database-format.ts.
 */
const BERTH_IDS = ['Brth', 'Brtb', 'Brtm'];

/**
 * Checks the header only; SQLite validates the rest when it opens the file.
 *
 * @throws {Fatal} if the file exists and is not a SQLite database, or is Berth's own
 */
export function assertStateFile(file: string): void {
  if (!existsSync(file)) return;
  const begin = Buffer.alloc(APPLICATION_ID_OFFSET + 4);
  const descriptor = openSync(file, 'r');
  try {
    readSync(descriptor, begin, 0, begin.length, 0);
  } finally {
    closeSync(descriptor);
  }
  const header = begin.toString('latin1');
  if (!header.startsWith(SQLITE_MAGIC)) throw unusableState(file, new Error('file is not a database'));
  if (BERTH_IDS.includes(header.slice(APPLICATION_ID_OFFSET)))
    throw new Fatal(
      `${file} is not a state file of the simulator (it is Berth's own database or a backup of it): give --state another file, such as the name of the database with the suffix .simulator.`,
    );
}

/** @returns a sentence for the operator about a file that cannot be read or written */
export function unusableState(stateFile: string, error: unknown): Fatal {
  if (error instanceof Fatal) return error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  const isDamaged = message === 'file is not a database' || /^SQLITE_(CORRUPT|NOTADB)/.test(code);
  const remedy = isDamaged
    ? 'restore it from a backup together with the database, or delete both to start empty.'
    : 'check that its disk has free space, and that this user can read and write the file and its folder.';
  return new Fatal(`The simulator cannot use its state ${stateFile} (${message}): ${remedy}`, {
    cause: error,
  });
}

/**
 * Locks a state file for this process: two processes would each start SSH servers for its machines and sell its
 * units. The operating system releases the lock when the process ends. Returns a function that releases it.
 *
 * @throws {InUse} if another process holds it
 */
export function takeStateLock(stateFile: string): () => void {
  if (stateFile === ':memory:') return () => undefined;
  const lock = new Database(lockFileOf(stateFile));
  try {
    lock.pragma('busy_timeout = 0');
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (!(error instanceof Database.SqliteError) || !error.code.startsWith('SQLITE_BUSY')) throw error;
    throw new InUse(
      `Another process runs the simulator of ${stateFile}: to share its machines, run one \`berth simulator --state ${stateFile}\` and set platform.address in every berth.yaml.`,
      { cause: error },
    );
  }
  return () => lock.close();
}

/** Checks that no other process runs the machines of the state. Creates no file. @throws {InUse} */
export function assertStateFree(stateFile: string): void {
  if (existsSync(dirname(stateFile)) && existsSync(lockFileOf(stateFile))) takeStateLock(stateFile)();
}

/** Returns the lock file of a state file. Links to the same file give the same lock file. */
function lockFileOf(stateFile: string): string {
  const path = existsSync(stateFile)
    ? realpathSync(stateFile)
    : join(realpathSync(dirname(stateFile)), basename(stateFile));
  return `${path}.lock`;
}
