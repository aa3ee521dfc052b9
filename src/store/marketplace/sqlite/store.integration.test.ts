import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { deployment, now, posting, seed, segment } from '../../../../test/support/rows/marketplace-rows.ts';
import { putEmptyDatabase } from '../../../../test/support/rows/stores.ts';
import { StoreUnavailable } from '../../../marketplace/model/store.ts';
import { describeMarketplaceStore } from '../store.suite.ts';
import { openMarketplaceSqliteStore } from './store.ts';

let folder: string;

async function openNew() {
  folder = mkdtempSync(join(tmpdir(), 'berth-marketplace-store-'));
  const path = join(folder, 'marketplace.db');
  await putEmptyDatabase('marketplace', path);
  return openMarketplaceSqliteStore(path);
}

describeMarketplaceStore("the marketplace's SQLite store", {
  setup: openNew,
  teardown: async (store) => {
    await store.close();
    rmSync(folder, { recursive: true });
  },
});

it('the store reports that it is unavailable, in reads, transactions and snapshots, when SQLite cannot answer', async () => {
  const store = await openNew();
  await store.close();
  await expect(store.read.deployments.byId('a')).rejects.toThrow(StoreUnavailable);
  await expect(store.transact((tx) => tx.deployments.byId('a'))).rejects.toThrow(StoreUnavailable);
  rmSync(folder, { recursive: true });
  await expect(store.snapshot((read) => read.deployments.byId('a'))).rejects.toThrow(StoreUnavailable);
});

it('does not allow changes or deletes in the ledger, and finds rows written past it', async () => {
  const store = await openNew();
  await seed(store);
  await store.transact(async (tx) => {
    await tx.deployments.insert(deployment());
    await tx.ledger.insertSegment(segment());
    await tx.ledger.post([posting(5, now + 1)]);
  });
  const past = new Database(join(folder, 'marketplace.db'));
  for (const table of ['ledger_transactions', 'ledger_entries', 'slices']) {
    const column = table === 'ledger_transactions' ? 'at' : 'amount_micro_usd';
    const refused = /the ledger is append-only/;
    expect(() => past.exec(`UPDATE ${table} SET ${column} = 1`)).toThrow(refused);
    expect(() => past.exec(`DELETE FROM ${table}`)).toThrow(refused);
  }
  // A slice without its transaction.
  expect(() => past.exec("INSERT INTO slices VALUES ('seg-1', 9, 5, 'none')")).toThrow(/FOREIGN KEY/);
  past.exec("INSERT INTO ledger_entries VALUES ('txn-1', 'cash', 1)");
  past.close();
  expect((await store.read.ledger.malformed(9)).map(({ id }) => id)).toContain('txn-1');
  await store.close();
  rmSync(folder, { recursive: true });
});
