import { marketplaceStores } from '../../../src/compose/stores/marketplace.ts';
import { openIn } from '../../../src/compose/stores/stores.ts';
import { verifyLedger } from '../../../src/marketplace/ledger/verify-ledger.ts';
import { systemClock } from '../../../src/runtime/system.ts';
import { SLICES_A_DAY, storeBooks } from '../../marketplace/stored-books.ts';
import { cpuMeter, cpuOf } from '../../support/cpu.ts';
import type { OpenSubject } from '../measure.ts';

/** The verification of books with n slices. */
export const open: OpenSubject = async ({ n, createDatabase }) => {
  const database = await createDatabase();
  await storeBooks(database, Math.ceil(n / SLICES_A_DAY));
  const store = await openIn(marketplaceStores, database, {});
  const meter = await cpuMeter(database);
  return {
    round: async () => {
      let slices = 0;
      const cpuUs = await cpuOf(meter, async () => {
        const { findings, counts } = await verifyLedger(store, systemClock.now());
        if (findings.length > 0) throw new Error(`the books are not in order: ${JSON.stringify(findings)}`);
        slices = counts.slices;
      });
      return { secondsAMillion: cpuUs / slices };
    },
    close: () => store.close(),
  };
};
