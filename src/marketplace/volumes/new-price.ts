import { type Price, priceFor } from '../discounts/price-for.ts';
import type { Reader } from '../ports/store.ts';

/** M: Volume, `hourlyRate`: "Discounted rate locked at create/resize". */
export async function newPrice(
  read: Pick<Reader, 'discounts'>,
  teamId: string,
  originalRateMicroUsd: number,
  now: number,
): Promise<Price & { discountEndsAt: number | null; lastPriceUpdateAt: number }> {
  return { ...(await priceFor(read, teamId, originalRateMicroUsd, now)), lastPriceUpdateAt: now };
}
