import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CommitListener, Store, Transaction } from '../../../src/orchestrator/model/store.ts';
import type { Lease } from '../../../src/orchestrator/model/work.ts';
import { openSqliteStore } from '../../../src/store/sqlite/store.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import { copySynced, removeDatabase } from '../../kernel/database-file.ts';
import type { ServerProcess } from '../../kernel/process.ts';

/** The database that all replicas share: the real store, in a file that a power cut can truncate. */
export class Database {
  readonly #folder: string;
  readonly #onCommit: CommitListener;
  /** Absent where several servers share the database: they commit one by one. */
  readonly #scheduler: Scheduler | undefined;
  #cuts = 0;
  #copies = 0;
  #path: string;
  #store: Store;
  #writer: ServerProcess | null = null;
  /** A server that was started before it changed writes nothing any more. */
  schemaVersion = 1;
  /** Until when the last pause of a process was that had the transaction for which others waited; 0: there was none. */
  heldUpUntil = 0;
  /** When the next work can be claimed, cached until work is written; undefined: not cached. */
  readonly #nextWorkAt = new Map<string, Promise<number | null>>();

  /** Opens a copy of the file `template`. */
  constructor(folder: string, template: string, onCommit: CommitListener, scheduler?: Scheduler) {
    this.#folder = folder;
    this.#onCommit = onCommit;
    this.#scheduler = scheduler;
    this.#path = join(folder, 'sim-0.db');
    copyFileSync(template, this.#path);
    this.#store = this.#open();
  }

  /** The process whose transaction runs or ran last; null: the operator's. */
  get writer(): ServerProcess | null {
    return this.#writer;
  }

  set writer(next: ServerProcess | null) {
    const before = this.#writer;
    if (before !== null && !before.isPaused)
      this.heldUpUntil = Math.max(this.heldUpUntil, before.pausedUntil);
    this.#writer = next;
  }

  get store(): Store {
    return this.#store;
  }

  /** Runs a transaction. If it writes work, its caller calls {@link workWritten}. */
  transact<T>(body: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#store.transact(body);
  }

  workWritten(): void {
    this.#nextWorkAt.clear();
  }

  nextWorkAt(platform: string): Promise<number | null> {
    const known = this.#nextWorkAt.get(platform) ?? this.#store.nextWorkAt(platform);
    this.#nextWorkAt.set(platform, known);
    return known;
  }

  /** Asks the store only when something can be claimed. */
  async claimWork(claim: Parameters<Store['claimWork']>[0]): Promise<Lease[]> {
    const next = await this.nextWorkAt(claim.platform);
    if (next === null || next > claim.now) return [];
    const leases = await this.#store.claimWork(claim);
    if (leases.length > 0) this.#nextWorkAt.clear();
    return leases;
  }

  async endAbandonedLeases(): Promise<void> {
    await this.#store.endAbandonedLeases();
    this.#nextWorkAt.clear();
  }

  /** Loses what was not synced. Every process that used the database has been killed before. */
  async cutPower(): Promise<void> {
    const [cut, path] = [this.#path, join(this.#folder, `sim-${++this.#cuts}.db`)];
    copySynced(cut, path);
    await this.close();
    this.#path = path;
    this.#store = this.#open();
  }

  /** Copies what is committed now into a file of its own, and returns its path. */
  copy(): string {
    const path = join(this.#folder, `copy-${++this.#copies}.db`);
    copySynced(this.#path, path);
    return path;
  }

  /** Goes back to a copy: what was committed since is lost. Every process that used the database has been killed before. */
  async goBack(copy: string): Promise<void> {
    const path = join(this.#folder, `sim-${++this.#cuts}.db`);
    for (const suffix of ['', '-wal'])
      if (existsSync(`${copy}${suffix}`)) copyFileSync(`${copy}${suffix}`, `${path}${suffix}`);
    await this.close();
    this.#path = path;
    this.#store = this.#open();
  }

  async close(): Promise<void> {
    await this.#store.close();
    removeDatabase(this.#path);
  }

  #open(): Store {
    this.#nextWorkAt.clear();
    const scheduler = this.#scheduler;
    const store = openSqliteStore(this.#path, scheduler && { nextTurn: () => scheduler.nextTurn() });
    store.subscribe(this.#onCommit);
    return store;
  }
}
