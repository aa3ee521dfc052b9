import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import {
  deployment,
  forgedLine,
  now,
  posting,
  seed,
  segment,
  teamId,
} from '../../../../test/support/rows/marketplace-rows.ts';
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
  expect(await store.read.ledger.unbalanced(9)).toEqual(['txn-1']);
  await store.close();
  rmSync(folder, { recursive: true });
});

it.each([
  ['a payment', `txn-grant-${teamId}`, 1],
  ['a transaction of two slices', 'txn-1', 1],
  ['a transaction of two slices, booked twice', 'txn-1', 2],
])('puts no day line in the place of %s', async (_what, transactionId, times) => {
  const store = await openNew();
  await seed(store, 100);
  await store.transact(async (tx) => {
    await tx.ledger.insertSegment(segment());
    await tx.ledger.post([posting(5, now + 2)]);
  });
  const past = new Database(join(folder, 'marketplace.db'));
  const forge = past.transaction(() => past.exec(forgedLine(transactionId, times)));
  expect(() => forge()).toThrow(/a day line is not the sum of its slices/);
  past.close();
  expect(await store.read.ledger.transactionsOf(teamId, 9)).toHaveLength(2);
  await store.close();
  rmSync(folder, { recursive: true });
});
