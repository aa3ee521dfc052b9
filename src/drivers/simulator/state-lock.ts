import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';

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
