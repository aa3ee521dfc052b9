import { expect, it } from 'vitest';
import { chanceOfMissing, missedCaches } from './caches.ts';

const change = (at: number, readAt: number) => ({
  oldFrom: Number.NEGATIVE_INFINITY,
  oldUntil: at,
  readsAt: [readAt],
});

it('a cache that lives 60 s is missed by a read 12 s after a change if it is filled anew in those 12 s', () => {
  expect(chanceOfMissing([change(100_000, 112_000)], 60_000)).toBeCloseTo(12 / 60, 2);
});

it('a second change shows what the first does not, unless it comes a whole lifetime later', () => {
  const first = change(100_000, 112_000);
  expect(chanceOfMissing([first, change(160_000, 172_000)], 60_000)).toBeCloseTo(12 / 60, 2);
  expect(chanceOfMissing([first, change(130_000, 142_000)], 60_000)).toBe(0);
});

it('a copy from before the old state began shows nothing stale', () => {
  const short = { oldFrom: 97_000, oldUntil: 100_000, readsAt: [112_000] };
  expect(chanceOfMissing([short], 60_000)).toBeCloseTo(57 / 60, 2);
});

it('without a change every cache is missed', () => {
  expect(missedCaches('the list', [])).toBe(
    'a cache of the list would have been missed with a chance of 100 % if it lives 60 s, and of 100 % if it lives 30 s',
  );
});
