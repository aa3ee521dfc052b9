import type { FreeUnits } from '../../../src/orchestrator/model/inventory.ts';
import { catalog, unitsOf } from '../catalog.ts';

type Place = Pick<FreeUnits, 'offerId' | 'datacenter'>;

/** How many units the hosts of a platform have: hosts fail, are cordoned, and are added. Machines stay where they are. */
export class HostCapacity {
  /** Where its machines can be. */
  readonly places: readonly Place[];
  /** How many units more than those of the catalog there are, by place. */
  readonly #more = new Map<string, number>();

  constructor(offerIds: readonly string[]) {
    this.places = offerIds.flatMap((offerId) => placesOf(offerId));
  }

  units(offerId: string, datacenter: string): number {
    return Math.max(0, unitsOf(offerId, datacenter) + (this.#more.get(`${offerId} ${datacenter}`) ?? 0));
  }

  change({ offerId, datacenter }: Place, by: number): void {
    const place = `${offerId} ${datacenter}`;
    this.#more.set(place, (this.#more.get(place) ?? 0) + by);
  }
}

function placesOf(offerId: string): Place[] {
  const { placements = [] } = catalog.offers.get(offerId) ?? {};
  return placements.flatMap(({ region }) => {
    const datacenter = catalog.regions.get(region)?.datacenter;
    return datacenter === undefined ? [] : [{ offerId, datacenter }];
  });
}
