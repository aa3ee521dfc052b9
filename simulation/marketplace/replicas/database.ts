import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Store } from '../../../src/marketplace/ports/store.ts';
import { openMarketplaceSqliteStore } from '../../../src/store/marketplace/sqlite/store.ts';

/** The one database that all replicas share: the real store, on a copy of a file that was filled once. */
export class MarketDatabase {
  readonly store: Store;
  readonly #path: string;

  constructor(folder: string, template: string) {
    this.#path = join(folder, 'market-run.db');
    copyFileSync(template, this.#path);
    this.store = openMarketplaceSqliteStore(this.#path);
  }

  async close(): Promise<void> {
    await this.store.close();
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${this.#path}${suffix}`, { force: true });
  }
}
