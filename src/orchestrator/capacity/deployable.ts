import type { UnavailableReason, UnavailableRegion } from '../../contract/extensions.ts';
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
  /** Whether {@link platformUnits} lacks the room of hosts that do not answer, or of all, since the platform does not count. */
  isCountPartial(platform: string): boolean;
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
  const ofCatalog = unitsOfCatalog(stock, wanted);
  return Math.max(0, Math.min(ofCatalog, stock.platform.platformUnits(offer, region) ?? ofCatalog));
}

/** Units that the catalog has for claims: without those that machines take which no row claims. */
function unitsOfCatalog({ platform }: Stock, { offer, region }: Wanted): number {
  const units = offer.placements.find((placement) => placement.region === region)?.units ?? 0;
  return units - platform.unclaimedUnits(offer.id, region);
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

/** Whether the claims say what is taken of a location's storage: each platform that has some of its volumes counts. */
export function isStorageKnown(catalog: Catalog, regionToken: string, sale: StorageSale): boolean {
  const { volumeTypes = [] } = catalog.regions.get(regionToken) ?? {};
  return volumeTypes.every(({ platform }) => sale.areStorageClaimsComplete(platform));
}

/**
 * GB of volumes that a location holds for claims; null: any number. 0 while the claims do not say what is taken.
 */
export function sellableStorageGb(catalog: Catalog, regionToken: string, sale: StorageSale): number | null {
  const { storageGb } = catalog.regions.get(regionToken) ?? {};
  if (storageGb === undefined) return null;
  if (!isStorageKnown(catalog, regionToken, sale)) return 0;
  return Math.max(0, storageGb - sale.unclaimedStorageGb(regionToken));
}

/** Why an offer cannot be had in a region; `claimed`: the units of it that instances hold there. */
export function unavailableReason(stock: Stock, wanted: Wanted, claimed: number): UnavailableReason {
  const obstacles = findObstacles(stock, wanted);
  if (obstacles.some(isMaintenance)) return 'maintenance';
  const isFrozen = obstacles.some(({ reason }) => reason === 'platform_frozen');
  if (obstacles.length > (isFrozen ? 1 : 0)) return 'withheld';
  if (claimed >= unitsOfCatalog(stock, wanted)) return 'sold_out';
  const isSilent = isFrozen || stock.platform.isCountPartial(wanted.offer.platform);
  return isSilent ? 'platform_silent' : 'sold_out';
}

function isMaintenance(obstacle: Obstacle): boolean {
  if (obstacle.reason === 'cordoned') return obstacle.cordon.isMaintenance;
  return obstacle.reason === 'region_maintenance' || obstacle.reason === 'offer_maintenance';
}

/** Of an offer: the regions in which a create would find a free unit now, and why it would find none in the others. */
export interface OfferStock {
  deployable: string[];
  unavailable: UnavailableRegion[];
}

/** By offer: a dry run for each placement, never a sum. */
export function stockOfOffers(stock: Stock, use: readonly PlacementUse[]): Map<string, OfferStock> {
  const unitsOf = freeUnits(stock, use);
  return new Map(
    [...stock.catalog.offers.values()].map((offer) => {
      const found: OfferStock = { deployable: [], unavailable: [] };
      for (const { region } of offer.placements) {
        const { claimed, free } = unitsOf({ offer, region });
        if (free > 0) found.deployable.push(region);
        else found.unavailable.push({ region, reason: unavailableReason(stock, { offer, region }, claimed) });
      }
      return [offer.id, found];
    }),
  );
}
