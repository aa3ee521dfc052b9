import type { DiscountRecord } from '../records/people.ts';

/** What a price depends on. */
export type Discounts = readonly Pick<DiscountRecord, 'percentage' | 'startsAt' | 'endsAt'>[];

/** M: Offer: "The higher of the volume-based and admin-assigned discounts applies". 0: none holds at `at`. */
export function bestDiscount(discounts: Discounts, at: number): number {
  const holding = discounts.filter(
    ({ startsAt, endsAt }) => startsAt <= at && (endsAt === null || at < endsAt),
  );
  return Math.max(0, ...holding.map(({ percentage }) => percentage));
}

/** The first moment after `at` from which less than `percentage` applies; null: none is known. */
export function endOfDiscount(discounts: Discounts, percentage: number, at: number): number | null {
  return changesAfter(discounts, at).find((time) => bestDiscount(discounts, time) < percentage) ?? null;
}

/** Each moment after `at` at which a discount starts or ends, in order. */
export function changesAfter(discounts: Discounts, at: number): number[] {
  return discounts
    .flatMap(({ startsAt, endsAt }) => [startsAt, endsAt ?? startsAt])
    .filter((time) => time > at)
    .sort((a, b) => a - b);
}
