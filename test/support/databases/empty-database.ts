import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
