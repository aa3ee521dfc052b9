import { expect, it } from 'vitest';
import type { SegmentRecord } from '../model/ledger-records.ts';
import { priceChange, unpostedOf } from './price-change.ts';

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
