import { bestDiscount, changesAfter, type Discounts, type Price, priceAt } from '../discounts/price.ts';
import type { SegmentRecord } from '../model/ledger-records.ts';

export interface PriceChange {
  at: number;
  price: Price;
}

/**
 * The first moment before `until` at which the team's discounts change what a segment costs; null: none does. What was
 * posted stays as it was, so that it is never before `postedUntil`.
 *
 * A deployment follows the team's best discount. A volume keeps the one that was locked in until the team has none as
 * good, and then costs the standard rate (M: Volume, `hourlyRate`).
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

/** What a segment costs up to `until` beyond what was posted, by all the prices that hold until then. */
export function unpostedOf(segment: SegmentRecord, discounts: Discounts, until: number): number {
  const change = priceChange(segment, discounts, until);
  if (change === null) return owedOf(segment, until);
  return owedOf(segment, change.at) + unpostedOf(continued(segment, change), discounts, until);
}

/** The segment that follows on this one when its price changes, but for its id. */
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
    nextPostAt: at,
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
