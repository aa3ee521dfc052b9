import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Store } from '../../../src/marketplace/model/store.ts';
import { openMarketplaceSqliteStore } from '../../../src/store/marketplace/sqlite/store.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import { copySynced, removeDatabase } from '../../kernel/database-file.ts';

/** The database that all replicas share: the real store, in a file that a power cut can truncate. */
export class MarketDatabase {
  readonly #folder: string;
  /** Absent where several servers share the database: they commit one by one. */
  readonly #scheduler: Scheduler | undefined;
  #cuts = 0;
  #path: string;
  #store: Store;

  constructor(folder: string, template: string, scheduler?: Scheduler) {
    this.#folder = folder;
    this.#scheduler = scheduler;
    this.#path = join(folder, 'market-run-0.db');
    copyFileSync(template, this.#path);
    this.#store = this.#open();
  }

  get store(): Store {
    return this.#store;
  }

  /** Loses what was not synced. Every process that used the database has been killed before. */
  async cutPower(): Promise<void> {
    const path = join(this.#folder, `market-run-${++this.#cuts}.db`);
    copySynced(this.#path, path);
    await this.close();
    this.#path = path;
    this.#store = this.#open();
  }

  async close(): Promise<void> {
    await this.#store.close();
    removeDatabase(this.#path);
  }

  #open(): Store {
    const scheduler = this.#scheduler;
    return openMarketplaceSqliteStore(this.#path, scheduler && { nextTurn: () => scheduler.nextTurn() });
  }
}
