import type { Catalog, Offer } from '../catalog/catalog.ts';
import type { PlacementUse } from '../ports/store.ts';

/** Units of the offer that the region holds; 0 where it is not sold, drained or under maintenance. */
export function sellableUnits(catalog: Catalog, offer: Offer, regionToken: string): number {
  const region = catalog.regions.get(regionToken);
  if (region === undefined || region.drained || region.maintenance || offer.maintenance) return 0;
  return offer.placements.find((placement) => placement.region === regionToken)?.units ?? 0;
}

/** For each offer the regions in which a create would find a free unit now: a dry run for each placement, never a sum. */
export function deployableRegions(
  catalog: Catalog,
  use: readonly PlacementUse[],
  isPlatformUp: boolean,
): Map<string, string[]> {
  const claimed = new Map(
    use.map((placement) => [`${placement.offerId} ${placement.region}`, placement.claimed]),
  );
  const isFree = (offer: Offer, region: string): boolean =>
    isPlatformUp && sellableUnits(catalog, offer, region) > (claimed.get(`${offer.id} ${region}`) ?? 0);
  return new Map(
    [...catalog.offers.values()].map((offer) => [
      offer.id,
      offer.placements.map((placement) => placement.region).filter((region) => isFree(offer, region)),
    ]),
  );
}
