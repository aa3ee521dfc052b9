import { expect, it } from 'vitest';
import { startPostgres } from '../../../test/support/databases/postgres.ts';
import { teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { openMarketplacePostgresStore } from '../../store/marketplace/postgres/store.ts';
import { booksOf } from '../ledger/ledger.fixture.ts';
import { assignDiscount, endDiscount } from './discounts.ts';

it('ends a discount after the usage that another server bills at that moment, not before [discount-ends-after-billing]', async () => {
  await using server = await startPostgres();
  const store = await openMarketplacePostgresStore(await server.createDatabase('marketplace'));
  const { deps, clock } = await booksOf(store);
  const { id } = await assignDiscount(deps, { teamId, percentage: 10 });
  const ending = await store.transact(async (tx) => {
    await tx.teams.byId(teamId);
    const begun = endDiscount(deps, id);
    const isWaiting = async () => {
      const waiting = await server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
      return waiting.length > 0;
    };
    await expect.poll(isWaiting).toBe(true);
    await clock.advance(1_000);
    return { begun };
  });
  expect((await ending.begun).endsAt).toBe(clock.now());
  await store.close();
});
