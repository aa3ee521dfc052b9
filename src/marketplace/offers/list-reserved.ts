import { invalid } from '../contract/errors.ts';
import type { OfferPage, ReservedOfferQuery } from '../contract/offer.ts';
import type { Providers } from '../providers/provider.ts';
import type { OfferBoard } from './offer-board.ts';
import { toOfferPage } from './offer-page.ts';

/**
 * M: GET /api/gpu-offers-with-reserved: what the listed providers sell, sold-out offers included with `available` false.
 * All of it is one page unless a `limit` was sent.
 *
 * @throws {ApiError} VALIDATION_ERROR for an id that is no provider's
 */
export async function listReservedOffers(
  { board, providers }: { board: OfferBoard; providers: Providers },
  query: ReservedOfferQuery,
  discountPercentage: number | null,
): Promise<OfferPage> {
  const known = providers.ids();
  const wanted = [...new Set(query.providers ?? known)];
  if (wanted.some((id) => !known.includes(id)))
    throw invalid('providers', `expected provider ids, comma-separated, of ${known.join(', ')}`);
  const rows = board.all(wanted, query.instanceType ?? null);
  const ranks = await board.ranks();
  const limit = query.limit ?? Math.max(1, rows.length);
  return toOfferPage(rows, query, { ranks, discountPercentage, limit });
}
