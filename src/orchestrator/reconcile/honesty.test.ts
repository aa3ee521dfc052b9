import { expect, it } from 'vitest';
import { isSuspect } from './honesty.ts';

it.each([
  { missing: 0, expected: 0, isDoubted: false },
  { missing: 0, expected: 5, isDoubted: false },
  // One machine that is gone is gone: nothing tells it from a platform that lies.
  { missing: 1, expected: 1, isDoubted: false },
  { missing: 2, expected: 2, isDoubted: true },
  { missing: 2, expected: 3, isDoubted: false },
  { missing: 3, expected: 3, isDoubted: true },
  { missing: 3, expected: 5, isDoubted: true },
  { missing: 3, expected: 6, isDoubted: false },
  { missing: 50, expected: 100, isDoubted: false },
  { missing: 51, expected: 100, isDoubted: true },
])('a listing that lacks $missing of $expected is doubted: $isDoubted', ({ isDoubted, ...held }) => {
  expect(isSuspect(held, 0.5)).toBe(isDoubted);
});
