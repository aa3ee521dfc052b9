import type { SegmentRecord } from '../records/ledger-records.ts';

const MS_PER_HOUR = 3_600_000n;

/** What `ms` cost at a rate: floor(rate × ms / hour), in integers of any size. A time that is none costs nothing. */
export function costOf(rateMicroUsdPerHour: number, ms: number): number {
  if (ms <= 0) return 0;
  return Number((BigInt(rateMicroUsdPerHour) * BigInt(ms)) / MS_PER_HOUR);
}

/** What `ms` cost at a rate, rounded up to a micro-USD: what is certainly enough to pay for it. */
export function ceilingCostOf(rateMicroUsdPerHour: number, ms: number): number {
  if (ms <= 0) return 0;
  return Number((BigInt(rateMicroUsdPerHour) * BigInt(Math.ceil(ms)) + MS_PER_HOUR - 1n) / MS_PER_HOUR);
}

/**
 * What is owed for a segment up to `until` and was not posted: the cost of the whole less what was. Slices so cut add
 * up to the cost of the whole, wherever they are cut.
 */
export function owedOf(
  segment: Pick<SegmentRecord, 'rateMicroUsdPerHour' | 'startedAt' | 'postedMicroUsd'>,
  until: number,
): number {
  return Math.max(0, costOf(segment.rateMicroUsdPerHour, until - segment.startedAt) - segment.postedMicroUsd);
}
