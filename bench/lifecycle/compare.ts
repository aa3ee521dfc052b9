import { createSeededRandom } from '../../src/drivers/kit/seeded-random.ts';
import { type Call, calls, type Round } from './calls.ts';

/** One call, in milliseconds. */
export interface Latency {
  call: Call;
  p50: number;
  p99: number;
}

/** How much longer a call takes here than in the other checkout, in milliseconds, with 95 % intervals. */
export interface Difference {
  call: Call;
  p50: Estimate;
  p99: Estimate;
}

export interface Estimate {
  value: number;
  low: number;
  high: number;
}

const RESAMPLES = 1_000;

export function latencies(rounds: readonly Round[]): Latency[] {
  return calls.map((call) => {
    const values = rounds.map((round) => round[call]);
    return { call, p50: percentile(values, 0.5), p99: percentile(values, 0.99) };
  });
}

/** Rounds of both checkouts, which were measured in pairs: the intervals come from drawing pairs anew. */
export function differences(here: readonly Round[], there: readonly Round[]): Difference[] {
  const random = createSeededRandom('differences');
  return calls.map((call) => {
    const pairs = here.map((round, index) => [round[call], there[index]?.[call] ?? Number.NaN] as const);
    const estimate = (of: (sample: typeof pairs) => number): Estimate => {
      const drawn = Array.from({ length: RESAMPLES }, () =>
        of(pairs.map(() => pairs[Math.floor(random.next() * pairs.length)] ?? [Number.NaN, Number.NaN])),
      );
      return { value: of(pairs), low: percentile(drawn, 0.025), high: percentile(drawn, 0.975) };
    };
    const p99 = (side: 0 | 1) => (sample: typeof pairs) =>
      percentile(
        sample.map((pair) => pair[side]),
        0.99,
      );
    return {
      call,
      p50: estimate((sample) =>
        percentile(
          sample.map(([a, b]) => a - b),
          0.5,
        ),
      ),
      p99: estimate((sample) => p99(0)(sample) - p99(1)(sample)),
    };
  });
}

/** The least value that at least this share of all is not above. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
