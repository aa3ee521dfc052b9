import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Markups, markedUp, markedUpStopped, noMarkups } from './markup.ts';

const percent = (basisPoints: number): Markups => ({ all: { basisPoints }, offers: new Map() });
const fixed = (microUsdPerHour: number): Markups => ({ all: { microUsdPerHour }, offers: new Map() });

it.each([
  [noMarkups, 1_234_567, 1_234_567, 1_234_567],
  [percent(0), 1_234_567, 1_234_567, 1_234_567],
  [percent(1_250), 2_000_000, 2_250_000, 2_250_000],
  // 12.5 % of 4 is 0.5, rounded up.
  [percent(1_250), 4, 5, 5],
  [percent(1_250), 3, 3, 3],
  [percent(100_000), 9_000_000_000, 99_000_000_000, 99_000_000_000],
  [fixed(100_000), 2_000_000, 2_100_000, 2_000_000],
])('adds %j to %i: %i while it runs, %i while it is stopped', (markups, asked, running, stopped) => {
  expect(markedUp(asked, markups, 'gpu-1')).toBe(running);
  expect(markedUpStopped(asked, markups, 'gpu-1')).toBe(stopped);
});

it('takes the markup of an offer before that of all', () => {
  const markups: Markups = {
    all: { basisPoints: 1_000 },
    offers: new Map([['gpu-1', { microUsdPerHour: 7 }]]),
  };
  expect([markedUp(100, markups, 'gpu-1'), markedUp(100, markups, 'gpu-2')]).toEqual([107, 110]);
});

it('rounds the exact price to the nearest micro-dollar, and never below the price of the provider', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 1e11 }),
      fc.integer({ min: 0, max: 100_000 }),
      (asked, basisPoints) => {
        const price = markedUp(asked, percent(basisPoints), 'any');
        const exact = BigInt(asked) * BigInt(10_000 + basisPoints);
        const off = BigInt(price) * 10_000n - exact;
        expect(off > -5_000n && off <= 5_000n).toBe(true);
        expect(price).toBeGreaterThanOrEqual(asked);
      },
    ),
  );
});
