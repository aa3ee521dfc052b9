import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { OpenOptions } from '../../src/store/sqlite/open-options.ts';
import type { Beginning, DatabaseTemplate, SharedDatabase } from './shared-database.ts';

/** Every connection of this process: a power cut has to know which commits SQLite had synced. */
const connections = new Set<Sqlite.Database>();
const { pragma } = Sqlite.prototype;
Sqlite.prototype.pragma = function (this: Sqlite.Database, ...args: Parameters<typeof pragma>): unknown {
  connections.add(this);
  return pragma.apply(this, args);
};

/** Makes a folder in memory where there is one: a run makes thousands of commits, and each is synced. */
export function makeFolder(): string {
  return mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'berth-sim-'));
}

/** SQLite's number for `synchronous=FULL`. */
const FULL = 2;

/** Copies what is left of a database after a power cut: what SQLite had synced. */
function copySynced(cut: string, path: string): void {
  const isSynced = synchronousOf(cut) >= FULL;
  copyFileSync(cut, path);
  if (!existsSync(`${cut}-wal`)) return;
  copyFileSync(`${cut}-wal`, `${path}-wal`);
  // Below FULL the log is synced at a checkpoint only, and then all of it is in the main file.
  if (!isSynced) truncateSync(`${path}-wal`, 0);
}

/** Removes the files of a database that was closed. */
function removeDatabase(path: string): void {
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

type Open<Store> = (path: string, options?: OpenOptions) => Store;

/** A template in a file, which `fill` fills once. */
export async function prepareFile<Store extends { close(): Promise<void> }>(
  open: Open<Store>,
  fill: (store: Store) => Promise<void>,
): Promise<DatabaseTemplate<Store>> {
  const folder = makeFolder();
  const template = join(folder, 'template.db');
  const store = open(template);
  await fill(store);
  await store.close();
  return {
    folder,
    take: async () => new DatabaseFile(folder, template, open),
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

let runs = 0;

/** The real store, in a file that a power cut can truncate. */
class DatabaseFile<Store extends { close(): Promise<void> }> implements SharedDatabase<Store> {
  readonly #folder: string;
  readonly #open: Open<Store>;
  #files = 0;
  #path: string;
  #beginning: Beginning<Store> | undefined;
  #store: Store | undefined;

  constructor(folder: string, template: string, open: Open<Store>) {
    this.#folder = join(folder, `run-${++runs}`);
    mkdirSync(this.#folder);
    this.#open = open;
    this.#path = this.#nextPath();
    copyFileSync(template, this.#path);
  }

  get store(): Store {
    if (this.#store === undefined) throw new Error('the world has not begun');
    return this.#store;
  }

  begin(beginning: Beginning<Store>): void {
    this.#beginning = beginning;
    const { scheduler, isShared, opened } = beginning;
    // Several servers commit one by one.
    this.#store = this.#open(this.#path, isShared ? {} : { nextTurn: () => scheduler.nextTurn() });
    opened?.(this.#store);
  }

  async cutPower(): Promise<void> {
    const path = this.#nextPath();
    copySynced(this.#path, path);
    await this.#moveTo(path);
  }

  async copy(): Promise<string> {
    const path = this.#nextPath();
    copySynced(this.#path, path);
    return path;
  }

  async goBack(copy: string): Promise<void> {
    const path = this.#nextPath();
    for (const suffix of ['', '-wal'])
      if (existsSync(`${copy}${suffix}`)) copyFileSync(`${copy}${suffix}`, `${path}${suffix}`);
    await this.#moveTo(path);
  }

  async close(): Promise<void> {
    await this.store.close();
    for (const connection of connections) if (!connection.open) connections.delete(connection);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #moveTo(path: string): Promise<void> {
    await this.store.close();
    removeDatabase(this.#path);
    this.#path = path;
    if (this.#beginning !== undefined) this.begin(this.#beginning);
  }

  #nextPath(): string {
    return join(this.#folder, `${++this.#files}.db`);
  }
}
