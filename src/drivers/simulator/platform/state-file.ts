import { closeSync, existsSync, openSync, readSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';

const SQLITE_MAGIC = 'SQLite format 3\0';
/** Offset of the application id in SQLite's file header: four bytes, big-endian. */
const APPLICATION_ID_OFFSET = 68;
/**
 * Application ids of Berth's databases ("Brth", "Brtm") and of a backup ("Brtb"), from
 * src/store/sqlite/database-format.ts.
 */
const BERTH_IDS = ['Brth', 'Brtb', 'Brtm'];

/** SQLite's own message. */
export const NO_DATABASE = 'file is not a database';

/** The file is Berth's database or a backup of it, which the simulator must not write to. */
export class NotAState extends Error {
  override readonly name = 'NotAState';
}

/**
 * Checks the header only; SQLite validates the rest when it opens the file.
 *
 * @throws {NotAState | Error} if the file exists and is not a SQLite database, or is Berth's own
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
  if (!header.startsWith(SQLITE_MAGIC)) throw new Error(NO_DATABASE);
  if (BERTH_IDS.includes(header.slice(APPLICATION_ID_OFFSET)))
    throw new NotAState("it is Berth's own database or a backup of it");
}

/** Another process runs the machines of this state. */
export class StateInUse extends Error {
  override readonly name = 'StateInUse';
}

/**
 * Locks a state file for this process: two processes would each start SSH servers for its machines and sell its
 * units. The operating system releases the lock when the process ends. Returns a function that releases it.
 *
 * @throws {StateInUse} if another process holds it
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
    throw new StateInUse(`another process uses ${stateFile}`, { cause: error });
  }
  return () => lock.close();
}

/** Checks that no other process runs the machines of the state. Creates no file. @throws {StateInUse} */
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
