import { expect, it } from 'vitest';
import { RequestCounts } from './request-counts.ts';

const lengthMs = 1_000;

it('keeps no more windows than it has room for: the one that began first goes', () => {
  const counts = new RequestCounts();
  const count = (name: string) => counts.count({ name, now: 0, lengthMs }).count;
  count('first');
  for (let number = 0; number < 99_999; number++) count(`other ${number}`);
  expect(count('first')).toBe(2);
  count('one too many');
  expect(count('other 99998')).toBe(2);
  expect(count('first')).toBe(1);
});

it('keeps those that are not over while it forgets those that are', () => {
  const counts = new RequestCounts();
  for (let number = 0; number < 10_000; number++) counts.count({ name: `old ${number}`, now: 0, lengthMs });
  counts.count({ name: 'young', now: 999, lengthMs });
  counts.count({ name: 'new', now: 1_000, lengthMs });
  expect(counts.count({ name: 'young', now: 1_000, lengthMs }).count).toBe(2);
  expect(counts.count({ name: 'old 1', now: 1_000, lengthMs }).count).toBe(1);
});
