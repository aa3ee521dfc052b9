import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { Inventory } from '../../orchestrator/model/inventory.ts';
import type { MachineSpec, OwnerRef, Placing, VolumeSpec } from '../../orchestrator/model/platform-driver.ts';
import type { Host } from './client.ts';
import { onProblem, VirshError } from './errors.ts';
import { inTime } from './fleet.ts';
import { sweepHost } from './gpus/machine-gpus.ts';
import type { HostShell } from './hosts/host-shell.ts';
import { readHostView } from './hosts/host-view.ts';
import { countUnits, type HostAnswer, problemsIn, viewsIn } from './hosts/inventory.ts';
import {
  countedOn,
  type HostView,
  placeMachine,
  roomOf,
  unitsOn,
  type Wanted,
  withCordons,
} from './hosts/room.ts';
import { imageOf, type LibvirtConfig, type LibvirtOffer, libvirtOfferSchema } from './options.ts';
import type { Platform } from './platform.ts';
import { VOLUME_FILE } from './volume-reader.ts';

export const offerOf = ({ offers }: Catalog, offerId: string): LibvirtOffer =>
  libvirtOfferSchema.parse(offers.get(offerId)?.machine ?? {});

export const viewOf = (
  host: Host & { shell: HostShell },
  { gpu_types: types }: LibvirtConfig,
): Promise<HostView> => readHostView(host, host.shell, types);

/** Reads hosts side by side, each after `before`. */
export function readHosts(
  hosts: readonly (Host & { shell: HostShell })[],
  { clock, config }: Pick<Platform, 'clock' | 'config'>,
  before: (host: Host & { shell: HostShell }) => Promise<void> = async () => {},
): Promise<HostAnswer[]> {
  const read = async (host: Host & { shell: HostShell }): Promise<HostAnswer> => {
    try {
      const reading = before(host).then(() => viewOf(host, config));
      return { host: host.name, view: await inTime(clock, hosts, host, reading) };
    } catch (error) {
      if (error instanceof VirshError) return { host: host.name, unknown: error.message };
      throw error;
    }
  };
  return Promise.all(hosts.map(read));
}

type Refusal = Extract<Placing, { answer: 'refused' }>;

const refuse = (code: Refusal['code'], detail: string): Refusal => ({ answer: 'refused', code, detail });

/** The resources that the machine needs; or a refusal if no host can have it. */
export function wantedOf({ config, catalog }: Platform, spec: MachineSpec): Wanted | Refusal {
  const offer = offerOf(catalog, spec.offerId);
  const image = imageOf(config, offer, spec.image);
  if (image === undefined) return refuse('image_missing', `this platform has no image ${spec.image}`);
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
  const answers = await readHosts(candidates, platform);
  const [views, problems] = [viewsIn(answers), problemsIn(answers)];
  const placing = rank(wanted, withCordons(views, avoidHosts), config);
  const isImageElsewhere = placing.answer === 'refused' && placing.code === 'image_missing';
  // A host that does not answer may have the image or the room.
  if (problems.length > 0 && (views.length === 0 || isImageElsewhere))
    return { answer: 'unknown', reason: problems.join('; ') };
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

/** Counts the room on all hosts. Resets dirty GPUs first, in case an earlier reset was missed. */
export async function readInventory(
  platform: Platform,
  avoidHosts: readonly string[] | undefined,
): Promise<Inventory> {
  const { fleet, config, catalog, log } = platform;
  const answers = await readHosts(fleet.hosts, platform, (host) =>
    sweepHost(host, config.gpu_types, log).catch(onProblem('late', undefined)),
  );
  return countUnits(catalog, answers, avoidHosts, config);
}

export async function placeVolume(
  platform: Platform,
  spec: VolumeSpec,
  avoidHosts: readonly string[] = [],
): Promise<Placing> {
  const candidates = platform.fleet.hosts.filter(
    ({ name, options }) =>
      options.datacenter === spec.datacenter &&
      !avoidHosts.includes(name) &&
      (spec.host === undefined || name === spec.host),
  );
  const answers = await readHosts(candidates, platform);
  const [views, problems] = [viewsIn(answers), problemsIn(answers)];
  const hosts = views
    .filter(({ cordon, fault }) => cordon === undefined && fault === undefined)
    .filter((view) => roomOf(view).diskGb >= spec.sizeGb)
    .toSorted((a, b) => roomOf(b).diskGb - roomOf(a).diskGb || (a.name < b.name ? -1 : 1))
    .map((view) => ({
      host: view.name,
      units: Math.floor(roomOf(view).diskGb / spec.sizeGb),
      counted: volumesOn(view),
    }));
  if (hosts.length > 0) return { answer: 'placed', hosts };
  if (views.length === 0 && problems.length > 0) return { answer: 'unknown', reason: problems.join('; ') };
  const where = spec.host ?? spec.datacenter;
  return {
    answer: 'refused',
    code: 'capacity',
    detail: `no host has ${spec.sizeGb} GB of disk free: ${where}`,
  };
}

/** The volumes whose size is included in the view. */
const volumesOn = ({ volumes }: HostView): OwnerRef[] =>
  [...volumes].flatMap((name) =>
    VOLUME_FILE.exec(name)?.[2] === 'volume' ? (VOLUME_FILE.exec(name)?.[1] ?? []) : [],
  );
