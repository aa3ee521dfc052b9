import type { Catalog, Offer } from '../../../orchestrator/catalog/catalog.ts';
import type {
  FreeUnits,
  HostDevice,
  Inventory,
  ObservedHost,
} from '../../../orchestrator/model/inventory.ts';
import type { Gpu } from '../gpus/gpus.ts';
import { imageOf, type LibvirtConfig, libvirtOfferSchema } from '../options.ts';
import { type Claim, countedOn, type HostView, roomOf, unitsOn, type Wanted, withCordons } from './room.ts';

/** A host's view, or why it is unknown. */
export type HostAnswer = { host: string; view: HostView } | { host: string; unknown: string };

/** The needs of a machine of the offer in a datacenter, with a root disk of `diskGb`. */
function toWanted(
  offer: Pick<Offer, 'machine' | 'vcpus' | 'memoryGb' | 'gpuCount' | 'gpuType' | 'osOptions'>,
  { images, accelerator }: Pick<LibvirtConfig, 'images' | 'accelerator'>,
  datacenter: string,
  diskGb: number,
): Wanted {
  const machine = libvirtOfferSchema.parse(offer.machine);
  return {
    datacenter,
    group: machine.host_group,
    volumes: offer.osOptions.flatMap((name) => imageOf({ images }, machine, name)?.volume ?? []),
    needsUefi: machine.uefi,
    needsKvm: accelerator === 'kvm',
    vcpus: offer.vcpus,
    memoryMb: offer.memoryGb * 1024,
    diskGb,
    gpuCount: offer.gpuCount ?? 0,
    gpuType: offer.gpuType,
  };
}

/**
 * Counts how many more machines of each offer fit. A host that does not answer counts as full; if none answers, the
 * result is unknown. A stopped machine that released its resources is not counted, so its room is free.
 */
export function countUnits(
  { offers, regions }: Catalog,
  answers: readonly HostAnswer[],
  avoidHosts?: readonly string[],
  config: Pick<LibvirtConfig, 'images' | 'accelerator'> = { images: {}, accelerator: 'auto' },
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
      const wanted = toWanted(offer, config, datacenter, offer.storageGb);
      const units = views.reduce((sum, view) => sum + unitsOn(view, wanted), 0);
      return { offerId: offer.id, datacenter, units };
    });
  });
  const hosts = answers.map((answer): ObservedHost => {
    if ('unknown' in answer) return { host: answer.host, state: 'silent', detail: answer.unknown };
    return toHost(views.find(({ name }) => name === answer.host) ?? answer.view);
  });
  return { answer: 'counted', free, counted: views.flatMap(countedOn), hosts };
}

function toHost(view: HostView): ObservedHost {
  const { name, sellable, claims, gpus } = view;
  const room = roomOf(view);
  const cordon = view.cordon ?? view.fault;
  const gb = (mb: number): number => Math.round(mb / 102.4) / 10;
  return {
    host: name,
    ...(cordon === undefined ? { state: 'open' } : { state: 'closed', detail: cordon }),
    vcpus: { total: sellable.vcpus, taken: sellable.vcpus - room.vcpus },
    memoryGb: { total: gb(sellable.memoryMb), taken: gb(sellable.memoryMb - room.memoryMb) },
    diskGb: { total: sellable.diskGb, taken: Math.round(sellable.diskGb - room.diskGb) },
    devices: gpus.map((gpu) => toDevice(gpu, claims)),
  };
}

function toDevice({ address, type, functions, state, reason }: Gpu, claims: readonly Claim[]): HostDevice {
  const holder = claims.find(({ pciFunctions }) =>
    functions.some((one) => pciFunctions.includes(one.address)),
  );
  const ofStopped = holder?.state === 'released' ? 'a stopped machine has it assigned' : reason;
  return {
    id: address,
    type,
    state,
    ...(state === 'claimed' && holder?.ref !== undefined && { ref: holder.ref }),
    ...(reason !== undefined && { detail: state === 'claimed' ? (ofStopped ?? reason) : reason }),
  };
}
