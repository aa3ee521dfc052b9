import { expect, it } from 'vitest';
import { liveThrough } from './month.ts';

it('charges exactly the integral of the price over two days with two providers', async () => {
  const report = await liveThrough({ seed: 3, days: 2, letters: ['d', 'b'], bustle: 0.3, stepMinutes: 60 });
  expect(report.contradictions).toEqual([]);
  expect(report.comparisons.filter(({ charged, exact }) => charged !== exact)).toEqual([]);
  expect(report.findings).toEqual([]);
  for (const seen of ['deploying → running', 'running → stopped', 'running → terminated', 'volume 201'])
    expect(report.counts.get(seen) ?? 0, seen).toBeGreaterThan(0);
  const paid = report.comparisons.filter(({ exact }) => exact > 0n);
  expect(paid.length).toBeGreaterThan(5);
});
