import type { Catalog, Offer } from '../../../orchestrator/catalog/catalog.ts';
import type {
  FreeUnits,
  HostDevice,
  Inventory,
  ObservedHost,
} from '../../../orchestrator/model/inventory.ts';
import { datacentersOf, listObstacles, withObstacles } from '../../kit/room.ts';
import type { Gpu } from '../gpus/gpus.ts';
import { imageOf, type LibvirtConfig, libvirtOfferSchema } from '../options.ts';
import {
  type Claim,
  countedOn,
  type HostView,
  obstacleOf,
  roomOf,
  unitsOn,
  type Wanted,
  withCordons,
  withoutMachines,
} from './room.ts';

/** A host's view, or why it is unknown. */
export type HostAnswer = { host: string; view: HostView } | { host: string; unknown: string };

export const viewsIn = (answers: readonly HostAnswer[]): HostView[] =>
  answers.flatMap((answer) => ('view' in answer ? [answer.view] : []));
export const problemsIn = (answers: readonly HostAnswer[]): string[] =>
  answers.flatMap((answer) => ('unknown' in answer ? [answer.unknown] : []));

/** The needs of a machine of the offer in a datacenter. */
function toWanted(
  offer: Offer,
  { images, accelerator }: Pick<LibvirtConfig, 'images' | 'accelerator'>,
  datacenter: string,
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
    diskGb: offer.storageGb,
    gpuCount: offer.gpuCount ?? 0,
    gpuType: offer.gpuType,
  };
}

/**
 * Counts how many more machines of each offer fit. A host that does not answer counts as full; if none answers, the
 * result is unknown. A stopped machine that released its resources is not counted, so its room is free.
 */
export function countUnits(
  catalog: Catalog,
  answers: readonly HostAnswer[],
  avoidHosts?: readonly string[],
  config: Pick<LibvirtConfig, 'images' | 'accelerator'> = { images: {}, accelerator: 'auto' },
): Inventory {
  const views = withCordons(viewsIn(answers), avoidHosts);
  if (views.length === 0)
    return { answer: 'unknown', reason: `no host answers: ${problemsIn(answers).join('; ')}` };
  const free = [...catalog.offers.values()].flatMap((offer): FreeUnits[] =>
    [...datacentersOf(catalog, offer)].map((datacenter) => {
      const wanted = toWanted(offer, config, datacenter);
      const units = views.reduce((sum, view) => sum + unitsOn(view, wanted), 0);
      const count = { offerId: offer.id, datacenter, units };
      return units > 0 ? count : withReasons(count, wanted, views, answers);
    }),
  );
  const hosts = answers.map((answer): ObservedHost => {
    if ('unknown' in answer) return { host: answer.host, state: 'silent', detail: answer.unknown };
    return toHost(views.find(({ name }) => name === answer.host) ?? answer.view);
  });
  return { answer: 'counted', free, counted: views.flatMap(countedOn), hosts };
}

/** Adds why no host has room. A host that does not answer may have room for a machine when it is empty. */
function withReasons(
  count: FreeUnits,
  wanted: Wanted,
  views: readonly HostView[],
  answers: readonly HostAnswer[],
): FreeUnits {
  const isHere = ({ group, datacenter }: HostView): boolean =>
    group === wanted.group && datacenter === wanted.datacenter;
  const here = views.filter(isHere);
  const silent = answers.flatMap((one) =>
    'unknown' in one ? { host: one.host, reason: 'it does not answer' } : [],
  );
  if (here.length === 0 && silent.length === 0)
    return withObstacles(count, [`no host is in ${wanted.datacenter}, ${wanted.group}`], []);
  const reasons = (hosts: readonly HostView[], machine: Wanted) =>
    hosts.flatMap((host) => {
      const reason = obstacleOf(host, machine);
      return reason === undefined ? [] : { host: host.name, reason };
    });
  const empty = reasons(here.map(withoutMachines), { ...wanted, volumes: [] });
  const isMisfit = silent.length === 0 && empty.length === here.length;
  const obstacles = listObstacles([...reasons(here, wanted), ...silent]);
  return withObstacles(count, obstacles, isMisfit ? listObstacles(empty) : []);
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
