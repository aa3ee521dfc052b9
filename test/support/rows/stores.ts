import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Store as MarketStore } from '../../../src/marketplace/model/store.ts';
import type { Store } from '../../../src/orchestrator/model/store.ts';
import { openMarketplaceSqliteStore } from '../../../src/store/marketplace/sqlite/store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/store.ts';

const open = { orchestrator: openSqliteStore, marketplace: openMarketplaceSqliteStore };
const made = new Map<keyof typeof open, Promise<Buffer>>();

/** Puts a database there as the migrations leave it, which run once in a process. */
export async function putEmptyDatabase(product: keyof typeof open, path: string): Promise<void> {
  let making = made.get(product);
  if (making === undefined) {
    making = make(product);
    made.set(product, making);
  }
  writeFileSync(path, await making, { mode: 0o600 });
  // As it was closed: it is not checked for damage.
  writeFileSync(`${path}.state`, 'closed');
}

async function make(product: keyof typeof open): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-empty-'));
  try {
    const path = join(folder, 'empty.db');
    await open[product](path).close();
    return readFileSync(path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** An empty store of the orchestrator, until the test has finished. */
export const openTestStore = (): Promise<Store> => openTemporary('orchestrator');

/** An empty store of the marketplace, until the test has finished. */
export const openTestMarketStore = (): Promise<MarketStore> => openTemporary('marketplace');

async function openTemporary<Product extends keyof typeof open>(product: Product) {
  const folder = mkdtempSync(join(tmpdir(), 'berth-store-'));
  const path = join(folder, 'test.db');
  await putEmptyDatabase(product, path);
  const store = open[product](path) as ReturnType<(typeof open)[Product]>;
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  return store;
}
