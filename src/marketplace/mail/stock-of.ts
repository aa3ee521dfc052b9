import type { CatalogOffer, Providers } from '../providers/provider.ts';
import type { StockAlertRecord } from '../records/people.ts';

export interface Stock {
  /** Null: it is not sold at all now. */
  offer: CatalogOffer | null;
  /** Those of the alert where it can be deployed now; none: it is sold out. */
  regions: readonly string[];
}

/** What is known of the stock that an alert is about; null: the provider has not been heard. */
export function stockOf(
  providers: Providers,
  { providerId, offerId, region }: Pick<StockAlertRecord, 'providerId' | 'offerId' | 'region'>,
): Stock | null {
  const catalog = providers.get(providerId)?.catalog;
  if (catalog === undefined || catalog.heardAt === null) return null;
  const offer = catalog.offers.get(offerId) ?? null;
  if (offer === null || offer.maintenance) return { offer, regions: [] };
  return { offer, regions: offer.inStockRegions.filter((name) => region === null || name === region) };
}
