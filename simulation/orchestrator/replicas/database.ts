import { copyFileSync, existsSync, mkdtempSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { CommitListener, Store, Transaction } from '../../../src/orchestrator/model/store.ts';
import type { Lease } from '../../../src/orchestrator/model/work.ts';
import { openSqliteStore } from '../../../src/store/sqlite/store.ts';
import type { Life } from '../../kernel/process.ts';

/** Every connection of this process, so that a power cut knows what SQLite had synced. */
const connections = new Set<Sqlite.Database>();
const { pragma } = Sqlite.prototype;
Sqlite.prototype.pragma = function (this: Sqlite.Database, ...args: Parameters<typeof pragma>): unknown {
  connections.add(this);
  return pragma.apply(this, args);
};

/** What is asked again is not compiled again: a run asks some hundred questions, thousands of times each. */
const statements = new WeakMap<Sqlite.Database, Map<string, Sqlite.Statement>>();
const { prepare } = Sqlite.prototype;
Sqlite.prototype.prepare = function (this: Sqlite.Database, source: string): Sqlite.Statement {
  const known = statements.get(this) ?? new Map<string, Sqlite.Statement>();
  statements.set(this, known);
  const statement = known.get(source) ?? prepare.call(this, source);
  known.set(source, statement);
  return statement.reader ? statement.raw(false) : statement;
} as typeof prepare;

/** A folder in memory, where there is one: a run makes thousands of commits, and each is synced. */
export function makeFolder(): string {
  return mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'berth-sim-'));
}

/** SQLite's number for `synchronous=FULL`. */
const FULL = 2;

/** The one database that all replicas share: the real store, in a file that can lose its power. */
export class Database {
  readonly #folder: string;
  readonly #onCommit: CommitListener;
  #cuts = 0;
  #path: string;
  #store: Store;
  /** The process whose transaction runs, or ran last; null: it is not a replica's. */
  writer: Life | null = null;
  /** When the next work can be claimed, as long as nothing is written; undefined: it has to be asked. */
  #nextWorkAt: Promise<number | null> | undefined;

  /** Opens a copy of the file `template`. */
  constructor(folder: string, template: string, onCommit: CommitListener) {
    this.#folder = folder;
    this.#onCommit = onCommit;
    this.#path = join(folder, 'sim-0.db');
    copyFileSync(template, this.#path);
    this.#store = this.#open();
  }

  get store(): Store {
    return this.#store;
  }

  /** Runs a transaction; whoever writes work in it says so by {@link workWritten}. */
  transact<T>(body: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#store.transact(body);
  }

  workWritten(): void {
    this.#nextWorkAt = undefined;
  }

  nextWorkAt(): Promise<number | null> {
    this.#nextWorkAt ??= this.#store.nextWorkAt();
    return this.#nextWorkAt;
  }

  /** Asks the store only where something can be claimed. */
  async claimWork(claim: Parameters<Store['claimWork']>[0]): Promise<Lease[]> {
    const next = await this.nextWorkAt();
    if (next === null || next > claim.now) return [];
    const leases = await this.#store.claimWork(claim);
    if (leases.length > 0) this.#nextWorkAt = undefined;
    return leases;
  }

  async endAbandonedLeases(): Promise<void> {
    await this.#store.endAbandonedLeases();
    this.#nextWorkAt = undefined;
  }

  /** What was not synced is lost. Every process that used the database has been killed before. */
  async cutPower(): Promise<void> {
    const [cut, path] = [this.#path, join(this.#folder, `sim-${++this.#cuts}.db`)];
    copySynced(cut, path);
    await this.close();
    this.#path = path;
    this.#store = this.#open();
  }

  async close(): Promise<void> {
    await this.#store.close();
    for (const connection of connections) if (!connection.open) connections.delete(connection);
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${this.#path}${suffix}`, { force: true });
  }

  #open(): Store {
    this.#nextWorkAt = undefined;
    const store = openSqliteStore(this.#path);
    store.subscribe(this.#onCommit);
    return store;
  }
}

/** Copies what is left of a database whose power is cut: what SQLite had synced. */
export function copySynced(cut: string, path: string): void {
  const isSynced = synchronousOf(cut) >= FULL;
  copyFileSync(cut, path);
  if (!existsSync(`${cut}-wal`)) return;
  copyFileSync(`${cut}-wal`, `${path}-wal`);
  // Below FULL the log is synced at a checkpoint only, and all of that is in the main file then.
  if (!isSynced) truncateSync(`${path}-wal`, 0);
}

/** Of the connection that writes the file. */
function synchronousOf(path: string): number {
  for (const connection of connections) {
    if (!connection.open || connection.name !== path) continue;
    if (Number(connection.pragma('query_only', { simple: true })) === 0)
      return Number(connection.pragma('synchronous', { simple: true }));
  }
  throw new Error(`nothing writes ${path}`);
}
