import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { seed } from '../../../../test/support/rows/marketplace-rows.ts';
import { marketplaceTables } from '../../schema/marketplace.ts';
import { sqlite } from '../../schema/sqlite.ts';
import { toConnection } from '../../sqlite/connection.ts';
import { growing, ledgerReads, ledgerWrites } from '../ledger-plans.fixture.ts';
import { ledgerWriter } from '../queries/ledger.ts';
import { openMarketplaceSqliteStore } from './store.ts';

it('reads and writes the ledger by its indexes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-ledger-plans-'));
  const path = join(folder, 'marketplace.db');
  const store = openMarketplaceSqliteStore(path);
  await seed(store);
  await store.close();
  const db = new Database(path);
  const prepare = db.prepare.bind(db);
  const statements = new Set<string>();
  db.prepare = ((source: string) => {
    statements.add(source);
    return prepare(source);
  }) as typeof db.prepare;
  const ledger = ledgerWriter(toConnection(db, marketplaceTables(sqlite)));
  for (const read of ledgerReads) await read(ledger);
  for (const write of ledgerWrites) await write(ledger);
  expect(statements.size).toBeGreaterThanOrEqual(ledgerReads.length + ledgerWrites.length);
  for (const source of statements) {
    const parameters = source.match(/\?/g)?.map(() => null) ?? [];
    const plan = prepare(`EXPLAIN QUERY PLAN ${source}`).all(...parameters) as { detail: string }[];
    const scans = plan.filter(({ detail }) => growing.some((table) => detail.startsWith(`SCAN ${table}`)));
    expect([source, scans]).toEqual([source, []]);
  }
  db.close();
  rmSync(folder, { recursive: true });
});
