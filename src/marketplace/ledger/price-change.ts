import { bestDiscount, changesAfter, type Discounts, type Price, priceAt } from '../discounts/price.ts';
import type { SegmentRecord } from '../model/ledger-records.ts';

export interface PriceChange {
  at: number;
  price: Price;
}

/**
 * The next price change of a segment, not before `postedUntil`. Null if there is none before `until`. A volume keeps
 * its locked-in discount until the team's best discount is lower. Then it costs the standard rate (M: Volume,
 * `hourlyRate`).
 */
export function priceChange(segment: SegmentRecord, discounts: Discounts, until: number): PriceChange | null {
  const from = Math.max(segment.startedAt, segment.postedUntil);
  for (const at of [from, ...changesAfter(discounts, from)]) {
    if (at >= until) return null;
    const percentage = percentageAt(segment, discounts, at);
    if (percentage !== segment.discountPercentage)
      return { at, price: priceAt(segment.originalRateMicroUsdPerHour, percentage) };
  }
  return null;
}

/** The cost of a segment from the last posting to `until`, at all prices that apply in between. */
export function unpostedOf(segment: SegmentRecord, discounts: Discounts, until: number): number {
  const change = priceChange(segment, discounts, until);
  if (change === null) return owedOf(segment, until);
  return owedOf(segment, change.at) + unpostedOf(continued(segment, change), discounts, until);
}

/** The segment that follows when the price changes, apart from its id. */
export function continued(segment: SegmentRecord, { at, price }: PriceChange): SegmentRecord {
  return {
    ...segment,
    rateMicroUsdPerHour: price.rateMicroUsd,
    originalRateMicroUsdPerHour: price.originalRateMicroUsd,
    discountPercentage: price.discountPercentage,
    startedAt: at,
    endedAt: null,
    postedUntil: at,
    postedMicroUsd: 0,
  };
}

function percentageAt(
  { subjectKind, discountPercentage }: SegmentRecord,
  discounts: Discounts,
  at: number,
): number {
  const best = bestDiscount(discounts, at);
  if (subjectKind === 'deployment') return best;
  return best < discountPercentage ? 0 : discountPercentage;
}

const MS_PER_HOUR = 3_600_000n;

/** The cost of `ms` at a rate: floor(rate × ms / hour), in big integers. Zero for a duration of zero or less. */
export function costOf(rateMicroUsdPerHour: number, ms: number): number {
  if (ms <= 0) return 0;
  return Number((BigInt(rateMicroUsdPerHour) * BigInt(ms)) / MS_PER_HOUR);
}

/** The cost of `ms` at a rate, rounded up to a micro-USD, so that the amount always suffices. */
export function ceilingCostOf(rateMicroUsdPerHour: number, ms: number): number {
  if (ms <= 0) return 0;
  return Number((BigInt(rateMicroUsdPerHour) * BigInt(Math.ceil(ms)) + MS_PER_HOUR - 1n) / MS_PER_HOUR);
}

/** The whole cost until `until` less the posted amount, so that slices add up wherever they are cut. */
export function owedOf(
  segment: Pick<SegmentRecord, 'rateMicroUsdPerHour' | 'startedAt' | 'postedMicroUsd'>,
  until: number,
): number {
  return Math.max(0, costOf(segment.rateMicroUsdPerHour, until - segment.startedAt) - segment.postedMicroUsd);
}
