import fc from 'fast-check';
import { expect, it } from 'vitest';
import { toDollars } from '../../contract/values.ts';
import type { SegmentRecord } from '../model/ledger-records.ts';
import { costOf, owedOf, priceChange, unpostedOf } from './price-change.ts';

const HOUR_MS = 3_600_000;
const open: SegmentRecord = {
  id: 'seg-1',
  subjectKind: 'deployment',
  subjectId: 'dep-1',
  teamId: 'team-1',
  state: 'running',
  rateMicroUsdPerHour: 1_000,
  originalRateMicroUsdPerHour: 1_000,
  discountPercentage: 0,
  providerRateMicroUsdPerHour: null,
  startedAt: 0,
  endedAt: null,
  postedUntil: 0,
  postedMicroUsd: 0,
};
const stored: SegmentRecord = {
  ...open,
  subjectKind: 'volume',
  state: 'stored',
  rateMicroUsdPerHour: 900,
  discountPercentage: 10,
};
const fromOneHour = [{ percentage: 20, startsAt: HOUR_MS, endsAt: null }];

it('finds the moment at which a deployment gets another price [price-change-moment]', () => {
  expect(priceChange(open, fromOneHour, HOUR_MS)).toBeNull();
  expect(priceChange(open, fromOneHour, HOUR_MS + 1)).toEqual({
    at: HOUR_MS,
    price: { originalRateMicroUsd: 1_000, rateMicroUsd: 800, discountPercentage: 20 },
  });
});

it('keeps the price of posted usage', () => {
  const posted = { ...open, postedUntil: 2 * HOUR_MS, postedMicroUsd: 2_000 };
  expect(priceChange(posted, fromOneHour, 3 * HOUR_MS)?.at).toBe(2 * HOUR_MS);
});

it('keeps the locked price of a volume until the team has no discount as good, then it is the standard one', () => {
  const better = [
    { percentage: 10, startsAt: 0, endsAt: HOUR_MS },
    { percentage: 30, startsAt: HOUR_MS, endsAt: 2 * HOUR_MS },
    { percentage: 5, startsAt: 0, endsAt: null },
  ];
  expect(priceChange(stored, better, 9 * HOUR_MS)).toEqual({
    at: 2 * HOUR_MS,
    price: { originalRateMicroUsd: 1_000, rateMicroUsd: 1_000, discountPercentage: 0 },
  });
});

it('charges unposted usage at each of the prices', () => {
  const twice = [{ percentage: 50, startsAt: HOUR_MS, endsAt: 2 * HOUR_MS }];
  expect(unpostedOf(open, twice, 3 * HOUR_MS)).toBe(2_500);
  expect(unpostedOf(stored, [], 2 * HOUR_MS)).toBe(2_000);
});

it.each([
  [1_000_000, 3_600_000, 1_000_000],
  [1_000_000, 1_800_000, 500_000],
  [1_000_001, 1_800_000, 500_000],
  [12, 299_999, 0],
  [12, 300_000, 1],
  [0, 10 ** 12, 0],
  [1_000_000, 0, 0],
  [1_000_000, -5, 0],
  [999_999_999_999, 365 * 86_400_000, 8_759_999_999_991_240],
])('%i per hour for %i ms costs %i', (rate, ms, expected) => {
  expect(costOf(rate, ms)).toBe(expected);
});

it('cuts a million slices that add up to the cost of the whole [slices-add-up]', () => {
  const rateMicroUsdPerHour = 1_234_567;
  const stepMs = 7_919;
  let postedMicroUsd = 0;
  for (let slice = 1; slice <= 1_000_000; slice++)
    postedMicroUsd += owedOf({ rateMicroUsdPerHour, startedAt: 0, postedMicroUsd }, slice * stepMs);
  expect(BigInt(postedMicroUsd)).toBe((1_234_567n * 7_919n * 1_000_000n) / 3_600_000n);
});

it('costs the same for a period however it is cut', () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 10 ** 10 }),
      fc.array(fc.nat({ max: 10 ** 9 }), { maxLength: 30 }),
      fc.integer({ min: 0, max: 10 ** 12 }),
      (rateMicroUsdPerHour, cuts, startedAt) => {
        let postedMicroUsd = 0;
        let end = startedAt;
        for (const ms of cuts) {
          end += ms;
          postedMicroUsd += owedOf({ rateMicroUsdPerHour, startedAt, postedMicroUsd }, end);
        }
        expect(postedMicroUsd).toBe(costOf(rateMicroUsdPerHour, end - startedAt));
      },
    ),
  );
});

it.each([
  [0, '$0.00'],
  [1, '$0.000001'],
  [-1_500_000, '-$1.50'],
  [12_345_678, '$12.345678'],
  [12_345_000, '$12.345'],
  [9_007_199_254_740_991, '$9007199254.740991'],
])('writes %i micro-USD as %s', (microUsd, text) => {
  expect(toDollars(microUsd)).toBe(text);
});
