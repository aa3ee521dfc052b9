import type { FigureRow } from '../model.ts';

export const HOUR_MS = 3_600_000;

/** The texts with which a row begins, and the numbers after them. */
export function split(row: FigureRow): { labels: string[]; values: number[] } {
  const labels = row.filter((part) => typeof part === 'string');
  return { labels, values: row.slice(labels.length).map(Number) };
}

/** Adds up the rows that have the same labels. The result is ordered, so that equal figures have equal rows. */
export function addRows(rows: readonly FigureRow[]): FigureRow[] {
  const sums = new Map<string, { labels: string[]; values: number[] }>();
  for (const row of rows) {
    const { labels, values } = split(row);
    const key = JSON.stringify(labels);
    const known = sums.get(key);
    if (known === undefined) sums.set(key, { labels, values });
    else known.values = addValues(known.values, values);
  }
  return [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { labels, values }]) => [...labels, ...values]);
}

/** Adds two lists of numbers place by place. A missing place is 0. */
export function addValues(a: readonly number[], b: readonly number[]): number[] {
  return Array.from(
    { length: Math.max(a.length, b.length) },
    (_, index) => (a[index] ?? 0) + (b[index] ?? 0),
  );
}

/** Adds up the first numbers of rows, by a name that follows from their texts. Rows without a name are left out. */
export function countBy(
  rows: readonly FigureRow[],
  nameOf: (labels: readonly string[]) => string | undefined,
): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const row of rows) {
    const { labels, values } = split(row);
    const name = nameOf(labels);
    if (name !== undefined) counts[name] = (counts[name] ?? 0) + (values[0] ?? 0);
  }
  return counts;
}

/**
 * One observed duration as numbers of a row that can be added up: how many, the sum in milliseconds, and how many are in
 * each bucket. `bounds`: the upper bounds of the buckets in seconds; one more bucket has what is longer.
 */
export function toObservation(ms: number, bounds: readonly number[]): number[] {
  const bucket = bounds.findIndex((bound) => ms / 1000 <= bound);
  const at = bucket < 0 ? bounds.length : bucket;
  return [1, Math.round(ms), ...Array.from({ length: at + 1 }, (_, index) => Number(index === at))];
}

/**
 * Estimates a quantile in seconds from added observations, evenly spread within a bucket, as Prometheus does. Of what is
 * longer than the last bound, only that bound is known. Undefined: nothing was observed.
 */
export function quantileOf(
  [count = 0, , ...buckets]: readonly number[],
  bounds: readonly number[],
  share: number,
): number | undefined {
  if (count === 0) return undefined;
  let below = 0;
  for (const [index, bound] of bounds.entries()) {
    const inBucket = buckets[index] ?? 0;
    if (inBucket > 0 && below + inBucket >= share * count) {
      const low = bounds[index - 1] ?? 0;
      return low + ((bound - low) * (share * count - below)) / inBucket;
    }
    below += inBucket;
  }
  return bounds.at(-1);
}
