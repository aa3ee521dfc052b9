import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { putEmptyDatabase } from '../../../test/support/rows/stores.ts';
import { openMarketplaceSqliteStore } from '../../store/marketplace/sqlite/store.ts';
import { describeRanges } from './ranges.suite.ts';

describeRanges({
  open: async (count) => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-ranges-'));
    const file = join(folder, 'market.db');
    await putEmptyDatabase('marketplace', file);
    const store = openMarketplaceSqliteStore(file);
    return {
      stores: new Array(count).fill(store),
      close: async () => {
        await store.close();
        rmSync(folder, { recursive: true });
      },
    };
  },
  // Signals arrive at once: the longest pause between polls, plus the delay of the next server's first poll.
  longestPauseMs: 42_000,
});
