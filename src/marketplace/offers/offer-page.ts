import { compareNames } from '../../contract/compare-names.ts';
import { invalid } from '../contract/errors.ts';
import type { OfferGroup, OfferPage, OfferQuery, ReservedOfferQuery, SortKey } from '../contract/offer.ts';
import type { Providers } from '../providers/provider.ts';
import type { OfferBoard, OfferRow } from './offer-board.ts';
import type { Ranks } from './popularity.ts';
import { withDiscount } from './to-offer.ts';

export interface PageContext {
  ranks: Ranks;
  /** Null: the request is not authenticated, so discounts are not shown (M: Offer). */
  discountPercentage: number | null;
  limit: number;
}

/** Filters, sorts and pages the rows (M: GET /api/gpu-offers). A page after the last is empty. */
function toOfferPage(rows: readonly OfferRow[], query: OfferQuery, context: PageContext): OfferPage {
  const { page = 1, sortBy = 'popularity', sortOrder = 'asc' } = query;
  const { limit, ranks } = context;
  const found = rows
    .filter((row) => isComputeType(row, query.computeType) && matches(row, query.search))
    .map((row) => ({ ...row, popularity: ranks(row.gpuType) }))
    .sort(byKey(sortBy, sortOrder === 'asc' ? 1 : -1));
  return {
    data: found.slice((page - 1) * limit, page * limit).map((group) => forCaller(group, context)),
    total: found.length,
    page,
    limit,
    totalPages: Math.ceil(found.length / limit),
  };
}

function forCaller(group: OfferGroup, { discountPercentage }: PageContext): OfferGroup {
  if (discountPercentage === null) return group;
  return { ...group, offers: group.offers.map((offer) => withDiscount(offer, discountPercentage)) };
}

function isComputeType({ gpuType }: OfferRow, computeType: 'cpu' | 'gpu' | undefined): boolean {
  return computeType === undefined || (gpuType === 'CPU') === (computeType === 'cpu');
}

/** M: "GPU model; also matches the displayed name, so `cpu` returns the CPU row". */
function matches({ gpuType, gpuModel, displayName }: OfferRow, search = ''): boolean {
  const wanted = search.trim().toLowerCase();
  return [gpuType, gpuModel, displayName].some((text) => text.toLowerCase().includes(wanted));
}

/** A row without stock has no figure and comes last in both directions. */
function byKey(key: SortKey, direction: 1 | -1): (a: OfferGroup, b: OfferGroup) => number {
  return (a, b) => {
    const [left, right] = [a[key], b[key]];
    const byFigure =
      left === undefined || right === undefined
        ? Number(left === undefined) - Number(right === undefined)
        : direction * compare(left, right);
    return byFigure || compareNames(a.gpuType, b.gpuType);
  };
}

function compare(a: string | number, b: string | number): number {
  return typeof a === 'number' && typeof b === 'number' ? a - b : compareNames(String(a), String(b));
}

/** M: "Pagination defaults: Offers: page 1, limit 10". */
const DEFAULT_LIMIT = 10;

/** M: GET /api/gpu-offers. `discountPercentage` null: not authenticated. */
export async function listOffers(
  board: OfferBoard,
  query: OfferQuery,
  discountPercentage: number | null,
): Promise<OfferPage> {
  const { limit = DEFAULT_LIMIT, instanceType = null } = query;
  const ranks = await board.ranks();
  return toOfferPage(await board.inStock(instanceType), query, { ranks, discountPercentage, limit });
}

/**
 * M: GET /api/gpu-offers-with-reserved. Includes sold-out offers. Without a `limit`, one page has all offers.
 * @throws {ApiError} VALIDATION_ERROR for an unknown provider id
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
  const rows = await board.all(wanted, query.instanceType ?? null);
  const ranks = await board.ranks();
  const limit = query.limit ?? Math.max(1, rows.length);
  return toOfferPage(rows, query, { ranks, discountPercentage, limit });
}
