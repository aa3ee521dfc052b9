import { closeSync, existsSync, openSync, readSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';

const SQLITE_MAGIC = 'SQLite format 3\0';
/** Where SQLite's file header has the application id, four bytes, the highest first. */
const APPLICATION_ID_OFFSET = 68;
/** Berth's databases ("Brth", "Brtm") and a backup ("Brtb"), as src/store/sqlite/database-format.ts marks them. */
const BERTH_IDS = ['Brth', 'Brtb', 'Brtm'];

/** As SQLite says it. */
export const NO_DATABASE = 'file is not a database';

/** The file is Berth's database or a backup of it, in which the simulator has nothing to write. */
export class NotAState extends Error {
  override readonly name = 'NotAState';
}

/**
 * Only reads. SQLite itself looks closer when the file is opened.
 *
 * @throws {NotAState | Error} if there is a file and it is no SQLite database, or Berth's own.
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
 * Makes this process the only one that runs the machines of a state file: two would each start their SSH servers
 * and sell their units. The lock is the operating system's, so it ends with the process, however that ends.
 * Returns what gives it back.
 *
 * @throws {StateInUse} if another process holds it.
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

/** Makes no file. @throws {StateInUse} */
export function assertStateFree(stateFile: string): void {
  if (existsSync(dirname(stateFile)) && existsSync(lockFileOf(stateFile))) takeStateLock(stateFile)();
}

/** The same for every name that the file has through links. */
function lockFileOf(stateFile: string): string {
  const path = existsSync(stateFile)
    ? realpathSync(stateFile)
    : join(realpathSync(dirname(stateFile)), basename(stateFile));
  return `${path}.lock`;
}
