import { expect, it } from 'vitest';
import { discount, team } from '../../../test/support/rows/marketplace-rows.ts';
import { balanceLowerBound, costsOf, realTimeBalance } from './balance.ts';
import { BillingJob } from './billing-job.ts';
import { type Books, openBooks } from './ledger.fixture.ts';

const fails = () => Promise.reject(new Error('no deployment is to be stopped or terminated'));
const CREDIT = 10_000_000;

/** The cost that the deployments show, and the decrease of the balance. */
async function readBoth({ store, clock }: Books): Promise<{ cost: number; spent: number }> {
  const now = clock.now();
  const records = await store.read.deployments.list({});
  const costOf = await costsOf(store.read, records, now);
  const cost = records.reduce((sum, record) => sum + costOf(record), 0);
  return { cost, spent: CREDIT - (await realTimeBalance(store.read, 'team-1', now)) };
}

it('a deployment costs what its team is charged, in the first minute, between slices and after them', async () => {
  const books = await openBooks(CREDIT);
  const { id } = await books.run();
  const billing = new BillingJob({
    ...books.deps,
    enforce: { stop: fails, terminate: fails, deleteVolume: fails },
  });
  let last = 0;
  for (let step = 0; step < 20; step++) {
    await books.clock.advance(7_000);
    await books.observe(id);
    if (step % 3 === 2) await billing.run();
    const { cost, spent } = await readBoth(books);
    expect(cost).toBe(spent);
    const most = CREDIT - (await balanceLowerBound(books.store.read, 'team-1', books.clock.now()));
    expect(most).toBeGreaterThanOrEqual(spent);
    expect(most).toBeLessThan(spent + 10);
    expect(cost).toBeGreaterThan(last);
    last = cost;
  }
});

it('costs no more than its provider has confirmed', async () => {
  const books = await openBooks(CREDIT);
  await books.run();
  await books.clock.advance(3_600_000);
  expect(await readBoth(books)).toEqual({ cost: 0, spent: 0 });
});

it('counts the deployments of several teams, each with its own discount', async () => {
  const books = await openBooks(CREDIT);
  await books.store.transact(async (tx) => {
    await tx.teams.insert(team({ id: 'team-2', slug: 'team-2' }));
    await tx.discounts.insert(discount({ teamId: 'team-2', percentage: 50 }));
  });
  const { id } = await books.run();
  await books.run({ id: 'dep-2', providerName: 'bm-2', teamId: 'team-2' });
  await books.clock.advance(60_000);
  for (const each of [id, 'dep-2']) await books.observe(each);
  const records = await books.store.read.deployments.list({});
  const costOf = await costsOf(books.store.read, records, books.clock.now());
  expect(records.map((record) => [record.teamId, costOf(record)]).sort()).toEqual([
    ['team-1', 33_333],
    ['team-2', 16_666],
  ]);
});
