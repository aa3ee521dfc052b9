import { expect, it } from 'vitest';
import { teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { endDiscount } from '../discounts/discounts.ts';
import { assessVolumeDiscounts, volumePercentage } from './assess-volume.ts';
import { BillingJob } from './billing-job.ts';
import { openBooks } from './ledger.fixture.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const stopsNothing = {
  stop: async () => undefined,
  terminate: async () => undefined,
  deleteVolume: async () => undefined,
};
const tiers = [
  { spendMicroUsd: 1_000_000, percentage: 5 },
  { spendMicroUsd: 10_000_000, percentage: 20 },
];

async function openDiscounts() {
  const books = await openBooks();
  const options = { ...books.options, billing: { ...books.options.billing, volumeDiscounts: tiers } };
  let spending = 0;
  return {
    ...books,
    /** Advances one day. The spending is booked at noon. */
    nextDay: async (spentMicroUsd: number) => {
      const at = books.clock.now() + DAY_MS / 2;
      spending += 1;
      const id = `txn-spent-${spending}`;
      if (spentMicroUsd > 0)
        await books.store.transact((tx) =>
          tx.ledger.book({ id, kind: 'usage', teamId, at, memo: 'use', reference: null }, [
            { account: `team:${teamId}`, amountMicroUsd: -spentMicroUsd },
            { account: 'revenue:compute', amountMicroUsd: spentMicroUsd },
          ]),
        );
      await books.clock.advance(DAY_MS);
      await assessVolumeDiscounts({ ...books.deps, options }, books.clock.now() + 5_000);
    },
    discounts: async () =>
      (await books.store.read.discounts.ofTeam(teamId)).map(({ id: _, teamId: __, ...rest }) => rest),
  };
}

it.each([
  [0, 0],
  [999_999, 0],
  [1_000_000, 5],
  [10_000_000, 20],
])('spending %i earns %i per cent', (spent, percentage) => {
  expect(volumePercentage(tiers, spent)).toBe(percentage);
});

it('gives each team the discount for its last 30 days from midnight on, and ends the former one [discount-by-volume]', async () => {
  const books = await openDiscounts();
  const midnight = books.clock.now();
  await books.nextDay(2_000_000);
  await books.nextDay(0);
  await books.nextDay(9_000_000);
  expect(await books.discounts()).toEqual([
    { source: 'volume', percentage: 5, startsAt: midnight + DAY_MS, endsAt: midnight + 3 * DAY_MS },
    { source: 'volume', percentage: 20, startsAt: midnight + 3 * DAY_MS, endsAt: null },
  ]);
  for (let day = 0; day < 30; day++) await books.nextDay(0);
  expect((await books.discounts()).slice(1)).toEqual([
    { source: 'volume', percentage: 20, startsAt: midnight + 3 * DAY_MS, endsAt: midnight + 31 * DAY_MS },
    { source: 'volume', percentage: 5, startsAt: midnight + 31 * DAY_MS, endsAt: midnight + 33 * DAY_MS },
  ]);
});

it('counts all usage up to midnight, posted or not, and none before the 30 days [discount-up-to-midnight]', async () => {
  const books = await openDiscounts();
  const { options } = books;
  const rate = 2_500;
  const ids = Array.from({ length: 5 }, (_, index) => `vol-${index}`);
  for (const id of ids)
    await books.keep({ id, volumeId: `v-${id}`, name: id, providerName: id, originalRateMicroUsd: rate });
  await books.run({ originalRateMicroUsd: rate });
  const dayMicroUsd = 24 * rate * (ids.length + 1);
  const assessed = async (spendMicroUsd: number) => {
    const volumeDiscounts = [{ spendMicroUsd, percentage: 5 }];
    const deps = { ...books.deps, options: { ...options, billing: { ...options.billing, volumeDiscounts } } };
    await books.store.transact((tx) => tx.settings.put('volume-discounts-assessed', ''));
    await assessVolumeDiscounts(deps, books.clock.now());
    return (await books.discounts()).filter(({ endsAt }) => endsAt === null).length;
  };
  const billing = new BillingJob({ ...books.deps, options, enforce: stopsNothing });
  const begunAt = books.clock.now();
  for (const days of [1, 30, 31]) {
    const midnight = begunAt + days * DAY_MS;
    for (const left of [90 * MINUTE_MS, 30 * MINUTE_MS, 0]) {
      await books.clock.advance(midnight - left - books.clock.now());
      await books.observe('dep-1');
      if (left > 0) await billing.run();
    }
    const spent = Math.min(days, 30) * dayMicroUsd;
    for (const [spendMicroUsd, discounts] of [
      [spent, 1],
      [spent + 1, 0],
    ] as const)
      expect(await assessed(spendMicroUsd)).toBe(discounts);
  }
});

it('assesses a day once, and alike by several processes at once', async () => {
  const books = await openDiscounts();
  const options = { ...books.options, billing: { ...books.options.billing, volumeDiscounts: tiers } };
  const deps = { ...books.deps, options };
  const now = books.clock.now() + DAY_MS;
  await books.store.transact((tx) =>
    tx.ledger.book({ id: 'txn-1', kind: 'usage', teamId, at: now - 1, memo: 'use', reference: null }, [
      { account: `team:${teamId}`, amountMicroUsd: -1_000_000 },
      { account: 'revenue:compute', amountMicroUsd: 1_000_000 },
    ]),
  );
  await Promise.all([assessVolumeDiscounts(deps, now), assessVolumeDiscounts(deps, now)]);
  await assessVolumeDiscounts(deps, now + DAY_MS - 1);
  expect(await books.discounts()).toHaveLength(1);
});

it('refuses to end a volume-based discount', async () => {
  const books = await openDiscounts();
  await books.nextDay(1_000_000);
  const [earned] = await books.store.read.discounts.ofTeam(teamId);
  await expect(endDiscount(books.deps, earned?.id ?? '')).rejects.toThrow(/depends on the spend/);
});
