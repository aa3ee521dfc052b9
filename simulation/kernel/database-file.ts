import { copyFileSync, existsSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';

/** Every connection of this process: a power cut has to know which commits SQLite had synced. */
const connections = new Set<Sqlite.Database>();
const { pragma } = Sqlite.prototype;
Sqlite.prototype.pragma = function (this: Sqlite.Database, ...args: Parameters<typeof pragma>): unknown {
  connections.add(this);
  return pragma.apply(this, args);
};

/** Compiled statements by their text: a run executes some hundred statements, thousands of times each. */
const statements = new WeakMap<Sqlite.Database, Map<string, Sqlite.Statement>>();
const { prepare } = Sqlite.prototype;
Sqlite.prototype.prepare = function (this: Sqlite.Database, source: string): Sqlite.Statement {
  const known = statements.get(this) ?? new Map<string, Sqlite.Statement>();
  statements.set(this, known);
  const statement = known.get(source) ?? prepare.call(this, source);
  known.set(source, statement);
  return statement.reader ? statement.raw(false) : statement;
} as typeof prepare;

/** Makes a folder in memory where there is one: a run makes thousands of commits, and each is synced. */
export function makeFolder(): string {
  return mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'berth-sim-'));
}

/** SQLite's number for `synchronous=FULL`. */
const FULL = 2;

/** Copies what is left of a database after a power cut: what SQLite had synced. */
export function copySynced(cut: string, path: string): void {
  const isSynced = synchronousOf(cut) >= FULL;
  copyFileSync(cut, path);
  if (!existsSync(`${cut}-wal`)) return;
  copyFileSync(`${cut}-wal`, `${path}-wal`);
  // Below FULL the log is synced at a checkpoint only, and then all of it is in the main file.
  if (!isSynced) truncateSync(`${path}-wal`, 0);
}

/** Removes the files of a database that was closed. */
export function removeDatabase(path: string): void {
  for (const connection of connections) if (!connection.open) connections.delete(connection);
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true });
}

/** The `synchronous` setting of the connection that writes the file. */
function synchronousOf(path: string): number {
  for (const connection of connections) {
    if (!connection.open || connection.name !== path) continue;
    if (Number(connection.pragma('query_only', { simple: true })) === 0)
      return Number(connection.pragma('synchronous', { simple: true }));
  }
  throw new Error(`nothing writes ${path}`);
}
