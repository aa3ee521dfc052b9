import { renderCloudInit } from '../../orchestrator/cloud-init/render.ts';
import { idOf } from '../../orchestrator/model/attempt.ts';
import type { MachineSpec, ObservedMachine, Step } from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending, unfinished } from '../../platform-model/steps.ts';
import { generateHostKey } from '../kit/host-key.ts';
import type { Change } from './change.ts';
import { define, mend, remark } from './definition.ts';
import { type Accelerator, type HostDomain, macOf, type NetworkSource, toDomainXml } from './domain-xml.ts';
import { hasProblem, onProblem, VirshError } from './errors.ts';
import { type FoundMachine, type Member, readMachine, rereadMachine } from './fleet.ts';
import { functionsOf, markGpus } from './gpus/machine-gpus.ts';
import { observeDomains } from './hosts/domains.ts';
import { chooseGpus, obstacleOf, settleClaim, withCordons } from './hosts/room.ts';
import { toIso9660 } from './iso9660.ts';
import type { NatMark } from './machine-mark.ts';
import { freeNat, takenPorts, toNetworkConfig } from './network.ts';
import { type Image, imageOf, type LibvirtOffer } from './options.ts';
import { offerOf, placeOnHosts, viewOf, wantedOf } from './placement.ts';
import type { ChangingPlatform, MachineMethod, Platform } from './platform.ts';
import { filesOf, makeOverlay, poolFolder, writeFile } from './pool.ts';
import { toObserved } from './translate.ts';

const SOON_MS = 1;
const CLAIM_POLL_MS = 250;

/**
 * Creates a machine in parts, one per call: claim and define, disk and seed, power on. The definition records the
 * progress, so any server can continue a repeated create. The cookie is the host's name.
 */
export const createMachine: MachineMethod<'create'> = async (platform, spec, cookie) => {
  const { fleet } = platform;
  const search = await fleet.find(spec.ref, spec.host);
  if (search.answer === 'found') return goOn(platform, spec, search.machine);
  const name = spec.host ?? cookie ?? (await firstHost(platform, spec));
  if (typeof name !== 'string') return name;
  const host = fleet.hosts.find((one) => one.name === name);
  if (host === undefined) return failed('capacity', `the platform has no host ${name}`);
  // Another host that is silent does not matter.
  if (search.answer === 'unknown' && search.hosts?.answered.includes(name) !== true)
    throw new VirshError('unreachable', search.reason);
  // An operator may have moved the domain to a silent host, and a second one would have the same name.
  if (cookie !== null)
    return unfinished(`${name} no longer has the domain that an earlier call defined there`);
  return fleet.alone(`place on ${name}`, () => claim(platform, host, spec));
};

async function firstHost(platform: Platform, spec: MachineSpec): Promise<string | Step<never>> {
  const placing = await placeOnHosts(platform, spec, spec.avoidHosts);
  if (placing.answer === 'unknown') return failed('transient', placing.reason);
  if (placing.answer === 'refused') return failed(placing.code, placing.detail);
  return placing.hosts[0]?.host ?? failed('capacity', 'no host has room');
}

/** Defines the machine on the host if it fits. */
async function claim(
  platform: ChangingPlatform,
  host: Member,
  spec: MachineSpec,
): Promise<Step<ObservedMachine>> {
  const { config, catalog } = platform;
  const offer = offerOf(catalog, spec.offerId);
  const image = imageOf(config, offer, spec.image);
  const wanted = wantedOf(platform, spec);
  if ('answer' in wanted || image === undefined)
    return failed('image_missing', `there is no image ${spec.image}`);
  const [view] = withCordons([await viewOf(host, config)], spec.avoidHosts);
  if (view === undefined) throw new Error(`there is no view of ${host.name}`);
  const domains = await observeDomains(host, host.shell);
  if (domains.some(({ release }) => release?.ref === spec.ref))
    return failed('already_exists', `${host.name} has ${spec.ref}, which was disowned: it is not Berth's`);
  const { disk, seed } = filesOf(spec.ref);
  const left = [disk, seed].filter((file) => view.volumes.has(file));
  if (left.length > 0) {
    const machine = await readMachine(host, spec.ref);
    if (machine !== undefined) return goOn(platform, spec, machine);
    return unfinished(`${host.name} has ${left.join(', ')} of an earlier call, but not its domain`);
  }
  const obstacle = obstacleOf(view, wanted);
  if (obstacle !== undefined) {
    const isRoomy = obstacleOf(view, { ...wanted, volumes: [] }) === undefined;
    return failed(isRoomy ? 'image_missing' : 'capacity', `${host.name}: ${obstacle}`);
  }
  const nat = natFor(host, offer, domains);
  if (nat === 'none') return failed('capacity', `${host.name} has no free port and address`);
  const gpus = chooseGpus(view, wanted);
  const pciFunctions = functionsOf(view, gpus);
  const accelerator =
    config.accelerator === 'auto' ? await host.fastestAccelerator(view.capabilities) : config.accelerator;
  await defineMachine(platform, host, spec, { offer, image, nat, gpus, pciFunctions, accelerator });
  return settle(platform, host, spec);
}

/** An address and ports that no domain of the host uses. Undefined if machines of this host need none. */
function natFor(
  host: Member,
  offer: LibvirtOffer,
  domains: readonly HostDomain[],
): NatMark | undefined | 'none' {
  const { network } = host.options;
  if (network.mode !== 'nat') return undefined;
  return freeNat(network, takenPorts(domains), offer.ports) ?? 'none';
}

async function defineMachine(
  { clock, catalog, change }: ChangingPlatform,
  host: Member,
  spec: MachineSpec,
  chosen: {
    offer: LibvirtOffer;
    image: Image;
    nat: NatMark | undefined;
    gpus: readonly string[];
    pciFunctions: readonly string[];
    accelerator: Accelerator;
  },
): Promise<void> {
  const { offer, image, nat, gpus, pciFunctions, accelerator } = chosen;
  const folder = await poolFolder(host);
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
    rootDiskPath: `${folder}/${files.disk}`,
    seedPath: `${folder}/${files.seed}`,
    network: source,
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
      nat,
      memo: 'create',
    },
  });
  await define(change, host, xml);
}

/** Confirms the claim if there is room for it and no other process has assigned the same port. */
async function settle(
  { config, change }: ChangingPlatform,
  host: Member,
  spec: MachineSpec,
): Promise<Step<ObservedMachine>> {
  const [machine, view, domains] = await Promise.all([
    rereadMachine(host, spec.ref),
    viewOf(host, config),
    observeDomains(host, host.shell),
  ]);
  const { mark, uuid } = machine.domain;
  const others = domains.filter((other) => other.uuid !== uuid);
  const sharesPort = mark.nat !== undefined && takenPorts(others).has(mark.nat.hostPort);
  const claim = settleClaim(view, spec.ref);
  // The host had room, but other claims came first. The next attempt is placed in the remaining room.
  const backOut = (reason: string): Step<never> => unfinished(`${host.name}: ${reason}`);
  if (claim.verdict === 'lost') return backOut(claim.reason);
  if (sharesPort) return backOut('another process assigned its port to another machine');
  if (claim.verdict === 'wait') return pending(host.name, CLAIM_POLL_MS, 'claim');
  const marked = await markGpus(change, host, spec.ref, mark.gpus);
  if (marked !== undefined) return backOut(`${marked} was not reset after another machine used it`);
  await remark(change, machine, { claim: 'held' });
  return pending(host.name, SOON_MS, 'make');
}

async function goOn(
  platform: ChangingPlatform,
  spec: MachineSpec,
  machine: FoundMachine,
): Promise<Step<ObservedMachine>> {
  const { host, running, domain } = machine;
  const { memo, claim: state } = domain.mark;
  if (!running && memo === 'create') {
    if (state === 'open') return settle(platform, host, spec);
    await prepare(platform, spec, machine);
    return pending(host.name, SOON_MS, 'make');
  }
  if (!running && memo === 'boot') await powerOn(platform.change, machine);
  return finishBoot(platform.change, host, spec.ref);
}

/** Makes disk and seed, or completes those of an earlier call. */
async function prepare(
  { config, catalog, change }: ChangingPlatform,
  spec: MachineSpec,
  machine: FoundMachine,
): Promise<void> {
  const { host, domain } = machine;
  const image = imageOf(config, offerOf(catalog, spec.offerId), spec.image);
  if (image === undefined) throw new VirshError('no_image', `there is no image ${spec.image}`);
  const hostKey = generateHostKey();
  const files = filesOf(spec.ref);
  const made = await Promise.allSettled([
    makeOverlay(change, host, files.disk, image.volume, spec.rootDiskGb).catch((error) =>
      unlessNoImage(error, host, image),
    ),
    writeFile(change, host, files.seed, seedOf(spec, image, host, domain.mark.nat, hostKey)),
  ]);
  // Throws only after both have ended, so that nothing of this call still runs.
  for (const one of made) if (one.status === 'rejected') throw one.reason;
  await remark(change, machine, { memo: 'boot', hostKeyFingerprint: hostKey.fingerprint });
}

const noImage = (host: Member, { volume }: Image): string =>
  `${host.name} has no ${volume}: put it into its pool, as docs/how-to/libvirt.md shows`;

/** Rethrows an error of a disk creation. If a volume is missing, it is the base image. */
function unlessNoImage(error: unknown, host: Member, image: Image): never {
  throw hasProblem(error, 'no_volume') ? new VirshError('no_image', noImage(host, image)) : error;
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
    'meta-data': JSON.stringify({ 'instance-id': idOf(spec.ref), 'local-hostname': spec.hostname }),
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
export async function powerOn(change: Change, { host, domain }: FoundMachine): Promise<void> {
  const starting = change.virsh(host, ['start', '--', domain.uuid], { timeoutMs: 60_000 });
  await starting.catch(onProblem('already_running', ''));
}

/** The running machine once it has an endpoint; pending until then. */
export async function finishBoot(change: Change, host: Member, ref: string): Promise<Step<ObservedMachine>> {
  const observed = await toObserved(await mend(await rereadMachine(host, ref), change));
  return observed.power === 'running' && observed.endpoint !== undefined
    ? done(observed)
    : pending(host.name, 1_000, 'boot');
}
