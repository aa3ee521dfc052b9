import { expect, it } from 'vitest';
import { teamId } from '../../store/marketplace/records.fixture.ts';
import { openBooks } from '../ledger/ledger.fixture.ts';
import { OperatorError } from '../model/own-rows.ts';
import { assessVolumeDiscounts, volumePercentage } from './assess-volume.ts';
import { assignDiscount, endDiscount } from './discounts.ts';

const DAY_MS = 86_400_000;
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
    /** A day goes by; what was spent on it is booked in its middle. */
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

it('gives each team what its last 30 days earn, from midnight on, and ends the former discount [discount-by-volume]', async () => {
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

it('assigns a discount and ends it once', async () => {
  const books = await openDiscounts();
  const startsAt = books.clock.now();
  const { id } = await assignDiscount(books.deps, { teamId, percentage: 50 });
  await books.clock.advance(1_000);
  await endDiscount(books.deps, id);
  await books.clock.advance(1_000);
  await endDiscount(books.deps, id);
  expect(await books.discounts()).toEqual([
    { source: 'admin', percentage: 50, startsAt, endsAt: startsAt + 1_000 },
  ]);
  const later = await assignDiscount(books.deps, { teamId, percentage: 5, startsAt: startsAt + DAY_MS });
  expect((await endDiscount(books.deps, later.id)).endsAt).toBe(startsAt + DAY_MS);
});

it('refuses what is no discount [discount-refused]', async () => {
  const books = await openDiscounts();
  const now = books.clock.now();
  for (const percentage of [4, 51, 7.5, Number.NaN])
    await expect(assignDiscount(books.deps, { teamId, percentage })).rejects.toThrow(/5 to 50/);
  const wrong = { teamId, percentage: 10 };
  await expect(assignDiscount(books.deps, { ...wrong, startsAt: now - 1 })).rejects.toThrow(/now or later/);
  await expect(assignDiscount(books.deps, { ...wrong, endsAt: now })).rejects.toThrow(/after it has started/);
  await expect(assignDiscount(books.deps, { ...wrong, teamId: 'team-9' })).rejects.toThrow(OperatorError);
  await expect(endDiscount(books.deps, 'disc-9')).rejects.toThrow(/no discount "disc-9"/);
});

it('refuses to end a discount that follows from what is spent', async () => {
  const books = await openDiscounts();
  await books.nextDay(1_000_000);
  const [earned] = await books.store.read.discounts.ofTeam(teamId);
  await expect(endDiscount(books.deps, earned?.id ?? '')).rejects.toThrow(/follows from/);
});
