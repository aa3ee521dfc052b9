import { afterAll, beforeAll } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { openMarketplacePostgresStore } from '../../store/marketplace/postgres/store.ts';
import { describeRanges } from './ranges.suite.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

describeRanges({
  open: async (count) => {
    const url = await server.createDatabase();
    const stores = await Promise.all(Array.from({ length: count }, () => openMarketplacePostgresStore(url)));
    return {
      stores,
      close: async () => {
        await Promise.all(stores.map((store) => store.close()));
      },
    };
  },
  // Virtual time does not wait for signals of other processes: two more rounds of leases.
  longestPauseMs: 62_000,
});
