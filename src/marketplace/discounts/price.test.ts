import fc from 'fast-check';
import { expect, it } from 'vitest';
import { bestDiscount, changesAfter, discounted, endOfDiscount, priceFor } from './price.ts';

const records = [
  { percentage: 10, startsAt: 100, endsAt: 400 },
  { percentage: 20, startsAt: 200, endsAt: 300 },
  { percentage: 5, startsAt: 350, endsAt: null },
];

it.each([
  [99, 0],
  [100, 10],
  [199, 10],
  [200, 20],
  [299, 20],
  [300, 10],
  [399, 10],
  [400, 5],
])('at %i the best of the discounts that hold is %i per cent [best-discount]', (at, percentage) => {
  expect(bestDiscount(records, at)).toBe(percentage);
});

it('computes the time from which less than a percentage applies', () => {
  expect(endOfDiscount(records, 20, 200)).toBe(300);
  expect(endOfDiscount(records, 10, 100)).toBe(400);
  expect(endOfDiscount(records, 5, 400)).toBeNull();
  expect(changesAfter(records, 200)).toEqual([300, 350, 350, 400]);
});

it.each([
  [1_000_000, 0, 1_000_000],
  [1_000_000, 15, 850_000],
  [1, 50, 1],
  [3, 50, 2],
  [10, 5, 10],
  [9, 5, 9],
  [30, 5, 29],
  [0, 50, 0],
])('%i less %i per cent is %i, rounded half up', (rate, percentage, expected) => {
  expect(discounted(rate, percentage)).toBe(expected);
});

it('rounds as exact fractions do, for every rate', () => {
  fc.assert(
    fc.property(fc.nat({ max: 10 ** 12 }), fc.integer({ min: 0, max: 50 }), (rate, percentage) => {
      const exact = BigInt(rate) * BigInt(100 - percentage);
      const twiceTheError = 2n * (BigInt(discounted(rate, percentage)) * 100n - exact);
      return twiceTheError > -100n && twiceTheError <= 100n;
    }),
  );
});

it('computes the discounted rate of a team, and until when it is valid [discounted-rate-holds-until]', async () => {
  const discounts = {
    ofTeam: async () =>
      records.map((record) => ({ ...record, id: 'disc-1', teamId: 'team-1', source: 'admin' as const })),
    ofTeams: async () => [],
    byId: async () => null,
    list: async () => [],
  };
  expect(await priceFor({ discounts }, 'team-1', 1_000, 250)).toEqual({
    originalRateMicroUsd: 1_000,
    rateMicroUsd: 800,
    discountPercentage: 20,
    discountEndsAt: 300,
  });
  expect(await priceFor({ discounts }, 'team-1', 1_000, 50)).toEqual({
    originalRateMicroUsd: 1_000,
    rateMicroUsd: 1_000,
    discountPercentage: 0,
    discountEndsAt: null,
  });
});
