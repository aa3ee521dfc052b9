import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import { renderCloudInit } from '../../orchestrator/cloud-init/render.ts';
import type { MachineSpec, ObservedMachine, Step } from '../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { define, remark } from './definition.ts';
import { macOf, type NetworkSource, toDomainXml } from './domain-xml.ts';
import { toFailure, VirshError } from './errors.ts';
import { type Fleet, type FoundMachine, type Member, readMachine } from './fleet.ts';
import { functionsOf, markGpus } from './gpus/machine-gpus.ts';
import { generateHostKey } from './host-key.ts';
import { listDomains, readHostView } from './hosts/host-view.ts';
import { placeMachine } from './hosts/place.ts';
import { type HostView, type Wanted, withCordons } from './hosts/room.ts';
import { settleClaim } from './hosts/settle-claim.ts';
import { toIso9660 } from './iso9660.ts';
import type { NatMark } from './machine-mark.ts';
import { freeNat, NETWORK_FILTER, toNetworkConfig } from './network.ts';
import { type Image, imageOf, type LibvirtConfig, type LibvirtOffer, libvirtOfferSchema } from './options.ts';
import { filesOf, makeOverlay, poolFolder, writeFile } from './pool.ts';
import { done, pending, refused, toObserved } from './translate.ts';

export interface Platform {
  fleet: Fleet;
  config: LibvirtConfig;
  catalog: Catalog;
  clock: Clock;
  log: Log;
}

const SOON_MS = 1;
const CLAIM_POLL_MS = 250;

/**
 * One call does one part: claim and define, then disk and seed, then power. The definition says how far it got, so that
 * a repeated create goes on from there, whoever repeats it. The cookie is the host's name.
 */
export async function createMachine(
  platform: Platform,
  spec: MachineSpec,
  cookie: string | null,
): Promise<Step<ObservedMachine>> {
  const { fleet } = platform;
  const search = await fleet.find(spec.ref);
  if (search.answer === 'found') return goOn(platform, spec, search.machine);
  // Without a cookie no earlier call made anything: the core has looked. A host that is away has no part in it then.
  if (search.answer === 'unknown' && cookie !== null) throw new VirshError('unreachable', search.reason);
  const offer = offerOf(platform.catalog, spec.offerId);
  const image = imageOf(platform.config, offer, spec.image);
  if (image === undefined)
    return refused('image_missing', `no image of this platform is called ${spec.image}`);
  return fleet.alone('place', () => place(platform, spec, offer, image));
}

function offerOf({ offers }: Catalog, offerId: string): LibvirtOffer {
  return libvirtOfferSchema.parse(offers.get(offerId)?.machine ?? {});
}

function toWanted(
  spec: Omit<Wanted, 'group' | 'memoryMb'> & { memoryGb: number },
  offer: LibvirtOffer,
): Wanted {
  const { vcpus, memoryGb, diskGb, datacenter, gpuCount, gpuType } = spec;
  const memoryMb = Math.round(memoryGb * 1024);
  return { vcpus, memoryMb, diskGb, datacenter, gpuCount, gpuType, group: offer.host_group };
}

async function place(
  platform: Platform,
  spec: MachineSpec,
  offer: LibvirtOffer,
  image: Image,
): Promise<Step<ObservedMachine>> {
  const { fleet, config } = platform;
  const wanted = {
    ...toWanted({ ...spec, diskGb: spec.rootDiskGb }, offer),
    volumes: [image.volume],
    needsUefi: offer.uefi,
    needsKvm: config.accelerator === 'kvm',
  };
  const candidates = fleet.hosts.filter(
    ({ options }) => options.datacenter === spec.datacenter && options.group === offer.host_group,
  );
  const answers = await Promise.allSettled(candidates.map((host) => viewOf(host, config)));
  const views = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  const failure = answers.find((answer) => answer.status === 'rejected');
  if (views.length === 0 && failure !== undefined) return toFailure(failure.reason, 'none');
  const placed = placeMachine(wanted, withCordons(views, spec.avoidHosts), config.placement);
  if ('refused' in placed) {
    const reasons = placed.refused.map(({ host, reason }) => `${host}: ${reason}`);
    const isRoomy =
      'host' in
      placeMachine({ ...wanted, volumes: [] }, withCordons(views, spec.avoidHosts), config.placement);
    return refused(
      isRoomy ? 'image_missing' : 'capacity',
      reasons.join('; ') || `no host is in ${spec.datacenter}, ${offer.host_group}`,
    );
  }
  const host = candidates.find(({ name }) => name === placed.host);
  const view = views.find(({ name }) => name === placed.host);
  if (host === undefined || view === undefined) throw new Error(`there is no host ${placed.host}`);
  const nat = await natFor(host, offer);
  if (nat === 'none') return refused('capacity', `${host.name} has no port and address left`);
  await defineMachine(platform, host, spec, offer, {
    image,
    nat,
    gpus: placed.gpus,
    pciFunctions: functionsOf(view, placed.gpus),
  });
  return settle(platform, host, spec);
}

const viewOf = (host: Member, { gpu_types: types }: LibvirtConfig): Promise<HostView> =>
  readHostView(host, host.shell, types);

/** An address and ports that no domain of the host has; undefined: machines of this host need none. */
async function natFor(host: Member, offer: LibvirtOffer): Promise<NatMark | undefined | 'none'> {
  const { network } = host.options;
  if (network.mode !== 'nat') return undefined;
  const taken = (await listDomains(host)).flatMap(({ mark }) => mark?.nat?.hostPort ?? []);
  return freeNat(network, new Set(taken), offer.ports) ?? 'none';
}

async function defineMachine(
  { clock, catalog }: Platform,
  host: Member,
  spec: MachineSpec,
  offer: LibvirtOffer,
  chosen: {
    image: Image;
    nat: NatMark | undefined;
    gpus: readonly string[];
    pciFunctions: readonly string[];
  },
): Promise<void> {
  const { image, nat, gpus, pciFunctions } = chosen;
  const [folder, accelerator] = await Promise.all([poolFolder(host), host.accelerator()]);
  const files = filesOf(spec.ref);
  const { network } = host.options;
  const source: NetworkSource =
    network.mode === 'nat' ? { network: network.network } : { bridge: network.bridge };
  const xml = toDomainXml({
    name: spec.ref,
    accelerator,
    kvmCpu: offer.cpu,
    uefi: offer.uefi,
    vcpus: spec.vcpus,
    memoryMb: Math.round(spec.memoryGb * 1024),
    rootDisk: { path: `${folder}/${files.disk}`, serial: 'root' },
    seedPath: `${folder}/${files.seed}`,
    network: source,
    networkFilter: {
      name: NETWORK_FILTER,
      parameters: nat === undefined ? { CTRL_IP_LEARNING: 'dhcp' } : { IP: nat.address },
    },
    isolated: true,
    consolePath: `${folder}/${files.console}`,
    hotplugSlots: offer.max_volumes,
    pciFunctions,
    mark: {
      ref: spec.ref,
      createdAt: clock.now(),
      note: spec.note,
      claim: 'open',
      holds: catalog.offers.get(spec.offerId)?.onStop === 'hold',
      diskGb: spec.rootDiskGb,
      gpuCount: spec.gpuCount,
      gpuType: spec.gpuType,
      gpus,
      user: image.user,
      ...(nat !== undefined && { nat }),
      memo: 'create',
    },
  });
  await define(host, xml);
}

/** Holds the claim if there is room for it, and if no other process gave the same port away. */
async function settle({ config }: Platform, host: Member, spec: MachineSpec): Promise<Step<ObservedMachine>> {
  const [machine, view, domains] = await Promise.all([
    readMachine(host, spec.ref),
    viewOf(host, config),
    listDomains(host),
  ]);
  if (machine === undefined) throw new VirshError('no_domain', `${spec.ref} is gone from ${host.name}`);
  const { mark } = machine.domain;
  const sharesPort = domains.some(
    (other) =>
      other.mark?.nat !== undefined &&
      other.name !== spec.ref &&
      other.mark.nat.hostPort === mark.nat?.hostPort,
  );
  const claim = settleClaim(view, spec.ref);
  // It was placed where there was room, and others were before it: it is placed again, on what is left.
  const backOut = async (reason: string): Promise<Step<never>> => {
    await host.virsh(['undefine', '--', spec.ref]);
    return refused('conflict', `${host.name}: ${reason}`);
  };
  if (claim.verdict === 'lost') return backOut(claim.reason);
  if (sharesPort) return backOut('another process gave its port away');
  if (claim.verdict === 'wait') return pending(host.name, CLAIM_POLL_MS);
  const marked = await markGpus(host, spec.ref, mark.gpus);
  if (marked !== undefined) return backOut(`${marked} was not reset since another machine had it`);
  await remark(machine, { claim: 'held' });
  return pending(host.name, SOON_MS);
}

async function goOn(
  platform: Platform,
  spec: MachineSpec,
  machine: FoundMachine,
): Promise<Step<ObservedMachine>> {
  const { host, running, domain } = machine;
  if (!running && domain.mark.claim === 'open') return settle(platform, host, spec);
  if (!running && domain.mark.memo === 'create') {
    await prepare(platform, spec, machine);
    return pending(host.name, SOON_MS);
  }
  if (!running && domain.mark.memo === 'boot') await powerOn(host, spec.ref);
  return finishBoot(host, spec.ref);
}

/** Disk and seed are made anew, since an earlier attempt may have left half of them; the machine never ran. */
async function prepare(
  { config, catalog }: Platform,
  spec: MachineSpec,
  machine: FoundMachine,
): Promise<void> {
  const { host, domain } = machine;
  const image = imageOf(config, offerOf(catalog, spec.offerId), spec.image);
  if (image === undefined) throw new VirshError('no_image', `no image is called ${spec.image}`);
  const hostKey = generateHostKey();
  const files = filesOf(spec.ref);
  await Promise.all([
    makeOverlay(host, files.disk, image.volume, spec.rootDiskGb).catch((error) =>
      unlessNoImage(error, host, image),
    ),
    writeFile(host, files.seed, seedOf(spec, image, host, domain.mark.nat, hostKey)),
  ]);
  await remark(machine, { memo: 'boot', hostKeyFingerprint: hostKey.fingerprint });
}

const noImage = (host: Member, { volume }: Image): string =>
  `${host.name} has no ${volume}: berth image import puts it there`;

/** What is missing where a disk is made is what it is based on. */
function unlessNoImage(error: unknown, host: Member, image: Image): never {
  const isMissing = error instanceof VirshError && error.problem === 'no_volume';
  throw isMissing ? new VirshError('no_image', noImage(host, image)) : error;
}

function seedOf(
  spec: MachineSpec,
  { user }: Image,
  host: Member,
  nat: NatMark | undefined,
  hostKey: { privateKey: string; publicKey: string },
): Buffer {
  const { vendorData, userData } = renderCloudInit(spec, { loginUser: user, hostKey });
  const files = {
    'meta-data': JSON.stringify({ 'instance-id': spec.ref, 'local-hostname': spec.hostname }),
    'network-config': toNetworkConfig(host.options, macOf(spec.ref), nat),
    'user-data': userData,
    'vendor-data': vendorData,
  };
  return toIso9660(
    'cidata',
    Object.entries(files).map(([name, content]) => ({ name, content: Buffer.from(content) })),
  );
}

/** @throws {VirshError} */
export async function powerOn(host: Member, ref: string): Promise<void> {
  try {
    await host.virsh(['start', '--', ref], { timeoutMs: 60_000 });
  } catch (error) {
    if (!(error instanceof VirshError && error.problem === 'already_running')) throw error;
  }
}

/** What a machine is once it runs, with an endpoint; until then it is asked again. */
export async function finishBoot(host: Member, ref: string): Promise<Step<ObservedMachine>> {
  const machine = await readMachine(host, ref);
  if (machine === undefined) throw new VirshError('no_domain', `${ref} is gone from ${host.name}`);
  const mended = await mend(machine);
  const observed = await toObserved(mended);
  return observed.power === 'running' && observed.endpoint !== undefined
    ? done(observed)
    : pending(host.name, 1_000);
}

/** What runs has booted, also where whoever started it did not get to write that. */
export async function mend(machine: FoundMachine): Promise<FoundMachine> {
  if (!machine.running || machine.domain.mark.memo !== 'boot') return machine;
  await remark(machine, { memo: undefined });
  return machine;
}
