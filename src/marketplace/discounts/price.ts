import type { DiscountRecord } from '../model/people.ts';
import type { Reader } from '../model/store.ts';

/** A rate before and after a team's discount. */
export interface Price {
  originalRateMicroUsd: number;
  rateMicroUsd: number;
  discountPercentage: number;
}

/** `discountEndsAt` is null if there is no discount or its end is not known. */
export async function priceFor(
  read: Pick<Reader, 'discounts'>,
  teamId: string,
  originalRateMicroUsd: number,
  at: number,
): Promise<Price & { discountEndsAt: number | null }> {
  const discounts = await read.discounts.ofTeam(teamId);
  const discountPercentage = bestDiscount(discounts, at);
  return {
    ...priceAt(originalRateMicroUsd, discountPercentage),
    discountEndsAt: discountPercentage === 0 ? null : endOfDiscount(discounts, discountPercentage, at),
  };
}

export function priceAt(originalRateMicroUsd: number, discountPercentage: number): Price {
  const rateMicroUsd = discounted(originalRateMicroUsd, discountPercentage);
  return { originalRateMicroUsd, rateMicroUsd, discountPercentage };
}

/** The discounts that a price depends on. */
export type Discounts = readonly Pick<DiscountRecord, 'percentage' | 'startsAt' | 'endsAt'>[];

/** M: Offer: "The higher of the volume-based and admin-assigned discounts applies". 0: no discount applies at `at`. */
export function bestDiscount(discounts: Discounts, at: number): number {
  const holding = discounts.filter(
    ({ startsAt, endsAt }) => startsAt <= at && (endsAt === null || at < endsAt),
  );
  return Math.max(0, ...holding.map(({ percentage }) => percentage));
}

/** The first moment after `at` at which less than `percentage` applies; null: none is known. */
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

/** The rate after a discount, rounded half up to a micro-USD. It is computed in integers, so no errors accumulate. */
export function discounted(rateMicroUsd: number, percentage: number): number {
  return Number((BigInt(rateMicroUsd) * BigInt(100 - percentage) + 50n) / 100n);
}
