import { type ApiError, invalid } from '../contract/errors.ts';
import { toTimestamp } from '../contract/values.ts';
import { pauseOf, pausesNow, type SalesPause } from '../model/sales-pause.ts';
import type { Reader } from '../model/store.ts';
import type { CatalogOffer } from '../providers/provider.ts';

/** The offer without stock in the regions where its sales are paused. */
export function withoutPaused(pauses: readonly SalesPause[], offer: CatalogOffer): CatalogOffer {
  if (pauses.length === 0) return offer;
  const inStockRegions = offer.inStockRegions.filter(
    (region) => pauseOf(pauses, { ...offer, region }) === undefined,
  );
  return inStockRegions.length === offer.inStockRegions.length ? offer : { ...offer, inStockRegions };
}

/** @throws {ApiError} VALIDATION_ERROR with `details.reason: sales_paused` and the operator's reason */
export async function assertSold(
  read: Pick<Reader, 'pauses'>,
  what: Parameters<typeof pauseOf>[1],
  now: number,
): Promise<void> {
  const pause = pauseOf(await pausesNow(read, now), what);
  if (pause !== undefined) throw toPaused(pause);
}

function toPaused({ providerId, region, offerId, reason, until }: SalesPause): ApiError {
  const path = offerId !== '' ? 'offerId' : region !== '' ? 'region' : 'provider';
  const what = [offerId, region, providerId].filter(Boolean).join(' in ');
  const end = until === null ? '' : ` until ${toTimestamp(until)}`;
  return invalid(path, `sales of ${what} are paused${end}: ${reason}`, { reason: 'sales_paused' });
}
