import { type Price, priceFor } from '../discounts/price.ts';
import type { Reader } from '../model/store.ts';

/** M: Volume, `hourlyRate`: "Discounted rate locked at create/resize". */
export async function newPrice(
  read: Pick<Reader, 'discounts'>,
  teamId: string,
  originalRateMicroUsd: number,
  now: number,
): Promise<Price & { discountEndsAt: number | null; lastPriceUpdateAt: number }> {
  return { ...(await priceFor(read, teamId, originalRateMicroUsd, now)), lastPriceUpdateAt: now };
}
