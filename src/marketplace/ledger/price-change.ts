import { bestDiscount, changesAfter, type Discounts } from '../discounts/best-discount.ts';
import { type Price, priceAt } from '../discounts/price-for.ts';
import type { SegmentRecord } from '../records/ledger-records.ts';
import { owedOf } from './cost.ts';

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
