import type { Catalog, Offer } from '../catalog/catalog.ts';
import type { CordonRecord } from '../model/cordon.ts';
import type { PlacementUse } from '../model/store.ts';
import { cordonsOn } from './cordons.ts';

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

/** What there is to sell, and what keeps it from being sold. */
export interface Stock {
  catalog: Catalog;
  platform: Sale;
  /** Those that stand. */
  cordons: readonly CordonRecord[];
}

/** Where a unit is wanted. `host`: of a machine that is there already, and can run on no other. */
export interface Wanted {
  offer: Offer;
  region: string;
  host?: string | null;
}

/** Why nothing of an offer is sold in a region, whatever is free there. */
export type Obstacle =
  | { reason: 'platform_frozen' | 'region_drained' | 'region_maintenance' | 'offer_maintenance' }
  | { reason: 'cordoned'; cordon: CordonRecord };

/** All of them; none: what is free there is sold. */
export function findObstacles({ catalog, platform, cordons }: Stock, wanted: Wanted): Obstacle[] {
  const { offer } = wanted;
  const region = catalog.regions.get(wanted.region);
  return [
    ...(platform.isOpen(offer.platform) ? [] : [{ reason: 'platform_frozen' as const }]),
    ...(region?.drained ? [{ reason: 'region_drained' as const }] : []),
    ...(region?.maintenance ? [{ reason: 'region_maintenance' as const }] : []),
    ...(offer.maintenance ? [{ reason: 'offer_maintenance' as const }] : []),
    ...cordonsOn(cordons, wanted).map((cordon) => ({ reason: 'cordoned' as const, cordon })),
  ];
}

/** Units of the offer that the region holds for claims; 0 where it is not placed, or there is an obstacle. */
export function sellableUnits(stock: Stock, wanted: Wanted): number {
  const { offer, region } = wanted;
  if (!stock.catalog.regions.has(region) || findObstacles(stock, wanted).length > 0) return 0;
  const units = offer.placements.find((placement) => placement.region === region)?.units ?? 0;
  const ofCatalog = units - stock.platform.unclaimedUnits(offer.id, region);
  return Math.max(0, Math.min(ofCatalog, stock.platform.platformUnits(offer, region) ?? ofCatalog));
}

/** What is claimed and what could be sold now of each offer in each of its regions. */
export function freeUnits(
  stock: Stock,
  use: readonly PlacementUse[],
): (wanted: Wanted) => { claimed: number; free: number } {
  const claims = new Map(use.map(({ offerId, region, claimed }) => [`${offerId} ${region}`, claimed]));
  return (wanted) => {
    const claimed = claims.get(`${wanted.offer.id} ${wanted.region}`) ?? 0;
    return { claimed, free: Math.max(0, sellableUnits(stock, wanted) - claimed) };
  };
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
export function deployableRegions(stock: Stock, use: readonly PlacementUse[]): Map<string, string[]> {
  const unitsOf = freeUnits(stock, use);
  const isFree = (offer: Offer, region: string): boolean => unitsOf({ offer, region }).free > 0;
  return new Map(
    [...stock.catalog.offers.values()].map((offer) => [
      offer.id,
      offer.placements.map((placement) => placement.region).filter((region) => isFree(offer, region)),
    ]),
  );
}
