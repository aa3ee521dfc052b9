import type { Catalog, Offer } from '../catalog/catalog.ts';
import type { PlacementUse } from '../model/store.ts';

/** What is known of the platforms' capacity, beside the claims. */
export interface Sale {
  /** Whether the platform can be believed, and the claims say what is taken there. */
  isOpen(platform: string): boolean;
  /** Units that machines take which have no row to claim them. */
  unclaimedUnits(offerId: string, region: string): number;
  /** Units that the platform itself has room for, the taken ones included; undefined: it does not limit them. */
  platformUnits(offer: Offer, region: string): number | undefined;
  /** Whether the storage claims say what the platform's volumes take, but for {@link unclaimedStorageGb}. */
  areStorageClaimsComplete(platform: string): boolean;
  /** GB of a location that volumes take which have no row to claim them. */
  unclaimedStorageGb(region: string): number;
}

/** What of it concerns volumes. */
export type StorageSale = Pick<Sale, 'areStorageClaimsComplete' | 'unclaimedStorageGb'>;

/**
 * Units of the offer that the region holds for claims; 0 where it is not sold, drained or under maintenance, and while
 * nothing is sold.
 */
export function sellableUnits(catalog: Catalog, offer: Offer, regionToken: string, sale: Sale): number {
  if (!sale.isOpen(offer.platform)) return 0;
  const region = catalog.regions.get(regionToken);
  if (region === undefined || region.drained || region.maintenance || offer.maintenance) return 0;
  const units = offer.placements.find((placement) => placement.region === regionToken)?.units ?? 0;
  const ofCatalog = units - sale.unclaimedUnits(offer.id, regionToken);
  return Math.max(0, Math.min(ofCatalog, sale.platformUnits(offer, regionToken) ?? ofCatalog));
}

/**
 * GB of volumes that a location holds for claims; null: any number. 0 while the claims do not say what is taken.
 */
export function sellableStorageGb(catalog: Catalog, regionToken: string, sale: StorageSale): number | null {
  const { storageGb, volumeTypes = [] } = catalog.regions.get(regionToken) ?? {};
  if (storageGb === undefined) return null;
  // The storage is the region's: each platform that has some of its volumes counts.
  if (!volumeTypes.every(({ platform }) => sale.areStorageClaimsComplete(platform))) return 0;
  return Math.max(0, storageGb - sale.unclaimedStorageGb(regionToken));
}

/** For each offer the regions in which a create would find a free unit now: a dry run for each placement, never a sum. */
export function deployableRegions(
  catalog: Catalog,
  use: readonly PlacementUse[],
  sale: Sale,
): Map<string, string[]> {
  const claimed = new Map(
    use.map((placement) => [`${placement.offerId} ${placement.region}`, placement.claimed]),
  );
  const isFree = (offer: Offer, region: string): boolean =>
    sellableUnits(catalog, offer, region, sale) > (claimed.get(`${offer.id} ${region}`) ?? 0);
  return new Map(
    [...catalog.offers.values()].map((offer) => [
      offer.id,
      offer.placements.map((placement) => placement.region).filter((region) => isFree(offer, region)),
    ]),
  );
}
