import { createSeededRandom } from '../../src/drivers/kit/seeded-random.ts';
import { type Call, calls, type Round } from './calls.ts';

/** One call, in milliseconds. */
export interface Latency {
  call: Call;
  p50: number;
  p99: number;
}

/** How much longer a call takes here than in the other checkout, in milliseconds, with 99 % intervals. */
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

/** Compares rounds of both checkouts, which were measured in pairs. The intervals come from resampling the pairs. */
export function differences(here: readonly Round[], there: readonly Round[]): Difference[] {
  const random = createSeededRandom('differences');
  return calls.map((call) => {
    const pairs = here.map((round, index) => [round[call], there[index]?.[call] ?? Number.NaN] as const);
    const estimate = (of: (sample: typeof pairs) => number): Estimate => {
      const drawn = Array.from({ length: RESAMPLES }, () =>
        of(pairs.map(() => pairs[Math.floor(random.next() * pairs.length)] ?? [Number.NaN, Number.NaN])),
      );
      return { value: of(pairs), low: percentile(drawn, 0.005), high: percentile(drawn, 0.995) };
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

/**
 * A call is too slow if it is certainly slower by more than its limit, and by more than this share of its time there.
 */
const RESOLUTION = 0.05;
/** With fewer rounds, the slowest hundredth is not meaningful. */
const ROUNDS_OF_P99 = 200;

/** The calls that take longer here by more than `mayTakeLongerMs`, as sentences. */
export function tooLong(
  { here, there }: { here: readonly Round[]; there: readonly Round[] },
  mayTakeLongerMs: number,
): string[] {
  const others = latencies(there);
  return differences(here, there).flatMap(({ call, ...difference }, index) =>
    (here.length < ROUNDS_OF_P99 ? (['p50'] as const) : (['p50', 'p99'] as const)).flatMap((what) => {
      const { value, low } = difference[what];
      const limit = mayTakeLongerMs + RESOLUTION * (others[index]?.[what] ?? 0);
      if (!(low > limit)) return [];
      return [`${call}: its ${what} is ${value.toFixed(1)} ms longer, at least ${low.toFixed(1)} ms`];
    }),
  );
}

/** The least value that is not exceeded by at least this share of all values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
