import { expect, it } from 'vitest';
import { liveThrough } from './month.ts';

/** What a month has to have seen for its bills to say much. */
const SEEN = [
  ...['deploying → running', 'running → stopped', 'stopped → running', 'running → terminated'],
  ...['running → terminated-provider', 'reclaim', 'restart 200', 'volume 201', 'remove 200'],
  ...['discount', 'volume discount', 'kill', 'a day down'],
];

it('charges exactly the integral of the price over a month with seven providers [month-of-bills]', async () => {
  const report = await liveThrough({ seed: 11, days: 30, bustle: 0.12, stepMinutes: 60 });
  expect(report.contradictions).toEqual([]);
  expect(report.comparisons.filter(({ charged, exact }) => charged !== exact)).toEqual([]);
  expect(report.findings).toEqual([]);
  expect(SEEN.filter((what) => !report.counts.has(what))).toEqual([]);
  expect(report.comparisons.filter(({ exact }) => exact > 0n).length).toBeGreaterThan(40);
}, 600_000);
