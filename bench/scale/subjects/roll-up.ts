import Database from 'better-sqlite3';
import { openMarketplaceStore } from '../../../src/compose/stores/marketplace.ts';
import { sqlitePath } from '../../../src/config/server-schema.ts';
import { RollUp } from '../../../src/marketplace/ledger/roll-up.ts';
import { verifyLedger } from '../../../src/marketplace/ledger/verify-ledger.ts';
import { defaultOptions } from '../../../src/marketplace/model/options.ts';
import { systemRandom as random } from '../../../src/runtime/system.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { HOURLY_MS, storeBooks } from '../../marketplace/stored-books.ts';
import { cpuMeter, cpuOf } from '../../support/cpu.ts';
import { quietLog as log } from '../../support/quiet-log.ts';
import type { OpenSubject } from '../measure.ts';

const LONG_OVER_MS = 40 * 86_400_000;

/**
 * Merges the days of n deployments with hourly slices, each into one line. A second round has nothing left to merge.
 */
export const open: OpenSubject = async ({ n, createDatabase }) => {
  const database = await createDatabase();
  await storeBooks(database, n, HOURLY_MS);
  const store = await openMarketplaceStore(database, () => undefined);
  const clock = new VirtualClock(Date.now() + LONG_OVER_MS);
  const rollUp = new RollUp({ store, clock, random, log, options: defaultOptions });
  const meter = await cpuMeter(database);
  const isFile = database.startsWith('sqlite:');
  const before = isFile ? sizeOf(database) : 0;
  const cpuUs = await cpuOf(meter, async () => {
    while ((await store.read.ledger.countRows()).uses > n) await rollUp.run();
  });
  const { findings } = await verifyLedger(store, clock.now());
  if (findings.length > 0) throw new Error(`the books are not in order: ${JSON.stringify(findings)}`);
  const cpuMs = cpuUs / 1000 / n;
  const result: Record<string, number> = isFile
    ? { cpuMs, beforeKib: before / 1024 / n, kib: sizeOf(database) / 1024 / n }
    : { cpuMs };
  return {
    round: async () => result,
    close: async () => {
      await rollUp.stop();
      await store.close();
    },
  };
};

/** Size of the pages in use, in bytes. */
function sizeOf(database: string): number {
  const db = new Database(sqlitePath(database), { readonly: true });
  try {
    const pragma = (name: string) => Number(db.pragma(name, { simple: true }));
    return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size');
  } finally {
    db.close();
  }
}
