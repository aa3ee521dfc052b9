/** The value below or at which `percent` of the values are; undefined without values. */
export function percentile(values: readonly number[], percent: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
}

/** The percentiles that a certificate shows; null without values. */
export function percentilesOf(
  values: readonly number[],
): { reads: number; p50: number; p95: number; p99: number } | null {
  const at = (percent: number): number => percentile(values, percent) ?? 0;
  return values.length === 0 ? null : { reads: values.length, p50: at(50), p95: at(95), p99: at(99) };
}
