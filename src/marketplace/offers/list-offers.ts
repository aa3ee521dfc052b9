import type { OfferPage, OfferQuery } from '../contract/offer.ts';
import type { OfferBoard } from './offer-board.ts';
import { toOfferPage } from './offer-page.ts';

/** M: "Pagination defaults: Offers: page 1, limit 10". */
const DEFAULT_LIMIT = 10;

/** M: GET /api/gpu-offers. `discountPercentage`: that of the caller's team, 0 without one; null: nobody is logged in. */
export async function listOffers(
  board: OfferBoard,
  query: OfferQuery,
  discountPercentage: number | null,
): Promise<OfferPage> {
  const { limit = DEFAULT_LIMIT, instanceType = null } = query;
  const ranks = await board.ranks();
  return toOfferPage(board.inStock(instanceType), query, { ranks, discountPercentage, limit });
}
