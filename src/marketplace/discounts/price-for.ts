import type { Reader } from '../ports/store.ts';
import { bestDiscount, endOfDiscount } from './best-discount.ts';
import { discounted } from './discounted.ts';

/** What a team pays of a rate. */
export interface Price {
  originalRateMicroUsd: number;
  rateMicroUsd: number;
  discountPercentage: number;
}

/** The price of `originalRateMicroUsd` for a team at `at`; `discountEndsAt` null: no end is known, or there is none. */
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
