import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { putEmptyDatabase } from '../../../test/support/databases/empty-database.ts';
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
  // The signals of others are heard at once: the longest pause of a poll, and that before the first of the next server.
  longestPauseMs: 42_000,
});
