import { expect, it } from 'vitest';
import { calls, type Round } from './calls.ts';
import { differences, latencies, percentile, tooLong } from './compare.ts';

const round = (ms: number): Round => Object.fromEntries(calls.map((call) => [call, ms])) as Round;
const rounds = (ms: (index: number) => number): Round[] =>
  Array.from({ length: 100 }, (_, index) => round(ms(index)));

it('takes the percentiles of each call', () => {
  expect(percentile([3, 1, 2], 0.5)).toBe(2);
  expect(latencies(rounds((index) => index + 1))[0]).toEqual({ call: 'pause', p50: 50, p99: 99 });
});

it('finds a difference that is smaller than the noise which both sides share', () => {
  const noise = (index: number) => 10 + 40 * ((index * 37) % 100);
  const [difference] = differences(
    rounds((index) => noise(index) + 2),
    rounds(noise),
  );
  expect(difference?.p50).toEqual({ value: 2, low: 2, high: 2 });
});

it('is not certain of a difference between two checkouts that take equally long', () => {
  const [difference] = differences(
    rounds((index) => 10 + ((index * 37) % 100)),
    rounds((index) => 10 + ((index * 61) % 100)),
  );
  expect(difference?.p50.low).toBeLessThan(0);
  expect(difference?.p99.low).toBeLessThanOrEqual(0);
});

it('names the calls that take longer by more than they may', () => {
  const there = [...rounds((index) => 10 + (index % 7)), ...rounds((index) => 10 + (index % 7))];
  const here = there.map((one) => ({ ...one, attach: one.attach + 12 }));
  expect(tooLong({ here, there }, 10)).toEqual([
    'attach: its p50 is 12.0 ms longer, at least 12.0 ms',
    'attach: its p99 is 12.0 ms longer, at least 12.0 ms',
  ]);
  expect(tooLong({ here, there }, 12)).toEqual([]);
  expect(tooLong({ here: here.slice(0, 100), there: there.slice(0, 100) }, 10)).toHaveLength(1);
});
