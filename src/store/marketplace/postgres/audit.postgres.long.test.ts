import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../../test/support/databases/postgres.ts';
import { seed, teamId } from '../../../../test/support/rows/marketplace-rows.ts';
import { StoreUnavailable } from '../../../marketplace/model/store.ts';
import { openMarketplacePostgresStore } from './store.ts';

/** Longer than the limits for a read, here and on the server. */
const SLOW_S = 12.5;

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

it('an audit of books of any size takes as long as it takes; any other read ends [audit-without-limit]', async () => {
  const url = await server.createDatabase('marketplace');
  const store = await openMarketplacePostgresStore(url);
  await seed(store, 5_000);
  await server.query('ALTER TABLE ledger_entries RENAME TO entries', url);
  await server.query(
    `CREATE VIEW ledger_entries AS SELECT entries.* FROM entries, (SELECT pg_sleep(${SLOW_S})) AS slept`,
    url,
  );
  const [audit, other] = await Promise.allSettled([
    store.snapshot((read) => read.ledger.balances()),
    store.read.ledger.balances(),
  ]);
  await store.close();
  expect(audit).toMatchObject({
    value: expect.arrayContaining([{ account: `team:${teamId}`, amountMicroUsd: 5_000 }]),
  });
  expect(other).toMatchObject({ reason: expect.any(StoreUnavailable) });
});
