import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { MachineSpec, Placing } from '../../orchestrator/model/platform-driver.ts';
import type { Platform } from './create.ts';
import { VirshError } from './errors.ts';
import type { Member } from './fleet.ts';
import { readHostView } from './hosts/host-view.ts';
import { placeMachine } from './hosts/place.ts';
import { countedOn, type HostView, unitsOn, type Wanted, withCordons } from './hosts/room.ts';
import { imageOf, type LibvirtConfig, type LibvirtOffer, libvirtOfferSchema } from './options.ts';

export const offerOf = ({ offers }: Catalog, offerId: string): LibvirtOffer =>
  libvirtOfferSchema.parse(offers.get(offerId)?.machine ?? {});

export const viewOf = (host: Member, { gpu_types: types }: LibvirtConfig): Promise<HostView> =>
  readHostView(host, host.shell, types);

export type Refusal = Extract<Placing, { answer: 'refused' }>;

const refuse = (code: Refusal['code'], detail: string): Refusal => ({ answer: 'refused', code, detail });

/** The machine's needs of a host; or why no host can have it. */
export function wantedOf({ config, catalog }: Platform, spec: MachineSpec): Wanted | Refusal {
  const offer = offerOf(catalog, spec.offerId);
  const image = imageOf(config, offer, spec.image);
  if (image === undefined)
    return refuse('image_missing', `no image of this platform is called ${spec.image}`);
  const { vcpus, memoryGb, rootDiskGb: diskGb, datacenter, gpuCount, gpuType } = spec;
  return {
    vcpus,
    memoryMb: Math.round(memoryGb * 1024),
    diskGb,
    datacenter,
    gpuCount,
    gpuType,
    group: offer.host_group,
    volumes: [image.volume],
    needsUefi: offer.uefi,
    needsKvm: config.accelerator === 'kvm',
  };
}

/** Where the machine could be made, best first. */
export async function placeOnHosts(
  platform: Platform,
  spec: MachineSpec,
  avoidHosts: readonly string[] | undefined,
): Promise<Placing> {
  const { fleet, config } = platform;
  const wanted = wantedOf(platform, spec);
  if ('answer' in wanted) return wanted;
  const candidates = fleet.hosts.filter(
    ({ name, options }) =>
      options.datacenter === wanted.datacenter &&
      options.group === wanted.group &&
      (spec.host === undefined || name === spec.host),
  );
  if (candidates.length === 0) {
    const which = spec.host === undefined ? 'no host' : `no host ${spec.host}`;
    return refuse('capacity', `${which} is in ${wanted.datacenter}, ${wanted.group}`);
  }
  const answers = await Promise.allSettled(candidates.map((host) => viewOf(host, config)));
  const views = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  const problems = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
  for (const problem of problems) if (!(problem instanceof VirshError)) throw problem;
  const placing = rank(wanted, withCordons(views, avoidHosts), config);
  const isImageElsewhere = placing.answer === 'refused' && placing.code === 'image_missing';
  // A host that does not answer may have it.
  if (problems.length > 0 && (views.length === 0 || isImageElsewhere))
    return { answer: 'unknown', reason: problems.map(({ message }) => message).join('; ') };
  return placing;
}

function rank(wanted: Wanted, views: readonly HostView[], { placement }: LibvirtConfig): Placing {
  const placed = placeMachine(wanted, views, placement);
  if ('refused' in placed) {
    const isRoomy = 'hosts' in placeMachine({ ...wanted, volumes: [] }, views, placement);
    const reasons = placed.refused.map(({ host, reason }) => `${host}: ${reason}`);
    return refuse(isRoomy ? 'image_missing' : 'capacity', reasons.join('; '));
  }
  return {
    answer: 'placed',
    hosts: placed.hosts.map((view) => ({
      host: view.name,
      units: unitsOn(view, wanted),
      counted: countedOn(view),
    })),
  };
}
