import { createRequire } from 'node:module';
import type Sqlite from 'better-sqlite3';
import { LogUnavailable } from './log-reader.ts';

/** How long a second process waits for the first. */
const PATIENCE_MS = 10_000;

/**
 * Locks a file that is there for this alone. SQLite holds a lock of the operating system, which ends with its process,
 * however that ends. @throws {LogUnavailable} if another process keeps it
 */
export function lockFile(path: string, patienceMs = PATIENCE_MS): Disposable {
  let database: Sqlite.Database | undefined;
  try {
    // Loaded here, since the rest of the suite runs where no native module is.
    const Database: typeof Sqlite = createRequire(import.meta.url)('better-sqlite3');
    database = new Database(path, { timeout: patienceMs });
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database?.close();
    const { code = '', message } = error as Error & { code?: string };
    throw new LogUnavailable(
      code.startsWith('SQLITE_BUSY')
        ? `another process has ${path}: try again when it has ended`
        : `${path} cannot be locked (${message})`,
    );
  }
  const held = database;
  return { [Symbol.dispose]: () => held.close() };
}
