import type { Catalog, Offer } from '../../../orchestrator/catalog/catalog.ts';
import type { FreeUnits, Inventory } from '../../../orchestrator/model/platform-driver.ts';
import { libvirtOfferSchema } from '../options.ts';
import { type HostView, unitsOn, type Wanted, withCordons } from './room.ts';

/** A host as it is, or why it is not known. */
export type HostAnswer = { host: string; view: HostView } | { host: string; unknown: string };

/** What a machine of the offer needs in a datacenter, with a root disk of `diskGb`. */
function toWanted(
  offer: Pick<Offer, 'machine' | 'vcpus' | 'memoryGb' | 'gpuCount' | 'gpuType'>,
  datacenter: string,
  diskGb: number,
): Wanted {
  return {
    datacenter,
    group: libvirtOfferSchema.parse(offer.machine).host_group,
    vcpus: offer.vcpus,
    memoryMb: offer.memoryGb * 1024,
    diskGb,
    gpuCount: offer.gpuCount ?? 0,
    gpuType: offer.gpuType,
  };
}

/**
 * How many more machines of each offer the hosts could take. A host that does not answer takes none: what cannot be
 * placed there is not sold. Where no host answers, nothing is known. A stopped machine that released its part of the host is
 * not counted: its room is free.
 */
export function countUnits(
  { offers, regions }: Catalog,
  answers: readonly HostAnswer[],
  avoidHosts?: readonly string[],
): Inventory {
  const known = answers.flatMap((answer) => ('view' in answer ? [answer.view] : []));
  const views = withCordons(known, avoidHosts);
  if (views.length === 0) {
    const reasons = answers.flatMap((answer) => ('unknown' in answer ? [answer.unknown] : []));
    return { answer: 'unknown', reason: `no host answers: ${reasons.join('; ')}` };
  }
  const free = [...offers.values()].flatMap((offer): FreeUnits[] => {
    const datacenters = new Set(
      offer.placements.map(({ region }) => regions.get(region)?.datacenter ?? region),
    );
    return [...datacenters].map((datacenter) => {
      const wanted = toWanted(offer, datacenter, offer.storageGb);
      const units = views.reduce((sum, view) => sum + unitsOn(view, wanted), 0);
      return { offerId: offer.id, datacenter, units };
    });
  });
  const held = views.flatMap(({ claims }) => claims.filter(({ state }) => state !== 'released'));
  return { answer: 'counted', free, counted: held.flatMap(({ ref }) => ref ?? []) };
}
