import { usdFromMicroUsd } from '../../contract/values.ts';
import type { OfferGroup } from '../contract/offer.ts';
import type { ProviderProfile } from '../providers/profile.ts';
import type { CatalogOffer } from '../providers/provider.ts';
import { isInStock, toOffer } from './to-offer.ts';

/** A row of the offers page, without the parts that depend on the caller and the time. */
export type OfferRow = Omit<OfferGroup, 'popularity'>;

export interface Selection {
  /** Whether sold-out offers, and rows with only such offers, are included (M: "Sold-out offers are not returned"). */
  isSoldOutIncluded: boolean;
  isWanted: (offer: CatalogOffer) => boolean;
}

/** Groups offers by GPU type. All offers without a GPU form the CPU row. */
export function groupOffers(
  providerOffers: readonly ProviderOffers[],
  { isSoldOutIncluded, isWanted }: Selection,
): OfferRow[] {
  const groups = new Map<string, ShownOffer[]>();
  for (const { profile, offers, note } of providerOffers)
    for (const offer of offers.values()) {
      if (offer.isWithdrawn === true || !isWanted(offer)) continue;
      if (!isSoldOutIncluded && !isInStock(offer)) continue;
      const group = groups.get(offer.gpuType);
      const shown = { offer, row: toOffer(offer, profile, note) };
      if (group === undefined) groups.set(offer.gpuType, [shown]);
      else group.push(shown);
    }
  return [...groups.values()].map(toRow);
}

interface ShownOffer {
  offer: CatalogOffer;
  row: OfferGroup['offers'][number];
}

function toRow(group: readonly ShownOffer[]): OfferRow {
  const sorted = group.toSorted(
    (a, b) =>
      a.offer.priceMicroUsdPerHour - b.offer.priceMicroUsdPerHour || compare(a.row.offerId, b.row.offerId),
  );
  const [first] = sorted;
  if (first === undefined) throw new Error('a group of offers is empty');
  const { gpuType, gpuModel, baseGpuType, displayName } = first.offer;
  const interconnectVariants = distinct(group.map(({ row }) => row.interconnectType)).filter(Boolean);
  return {
    gpuType,
    gpuModel,
    baseGpuType,
    displayName,
    interconnectVariants: interconnectVariants.toSorted(compare),
    hasMultipleVariants: interconnectVariants.length > 1,
    ...toStock(group.filter(({ row }) => row.available).map(({ offer }) => offer)),
    providers: distinct(group.map(({ row }) => row.provider)),
    offers: sorted.map(({ row }) => row),
  };
}

/** M: "computed from in-stock offers only". So are the other figures; without stock they are absent. */
function toStock(inStock: readonly CatalogOffer[]) {
  const prices = inStock.map(({ priceMicroUsdPerHour }) => priceMicroUsdPerHour);
  const sum = prices.reduce((total, price) => total + price, 0);
  return {
    totalAvailable: inStock.reduce((total, { inStockRegions }) => total + inStockRegions.length, 0),
    ...(prices.length > 0 && {
      lowestPrice: usdFromMicroUsd(Math.min(...prices)),
      highestPrice: usdFromMicroUsd(Math.max(...prices)),
      averagePrice: usdFromMicroUsd(Math.round(sum / prices.length)),
    }),
  };
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values)];
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

export interface ProviderOffers {
  profile: ProviderProfile;
  /** A new map whenever an offer has changed. */
  offers: ReadonlyMap<string, CatalogOffer>;
  /** M: Offer, `note`. */
  note: string | null;
}
