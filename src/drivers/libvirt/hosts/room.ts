import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import { CORDONED, type Limit, shortageIn, unitsWithin } from '../../kit/room.ts';
import type { Gpu } from '../gpus/gpus.ts';
import type { PciAddress } from '../gpus/pci-functions.ts';
import type { ClaimState } from '../machine-mark.ts';
import type { Capabilities } from './host-facts.ts';

export interface Size {
  vcpus: number;
  memoryMb: number;
  diskGb: number;
}

/** The resources that a domain takes on its host, from its definition. */
export interface Claim extends Size {
  /** Undefined if the domain is not Berth's. */
  ref: OwnerRef | undefined;
  /** For a domain that is not Berth's: `held` while it runs, otherwise `released`. */
  state: ClaimState;
  /** Every PCI function that it names. */
  pciFunctions: readonly PciAddress[];
}

/** What is wrong with a host. `isFatal`: it cannot start new machines. */
export interface HostProblem {
  finding: string;
  remedy: string;
  isFatal: boolean;
}

/** A host's current state, with the claims of all its domains, from any Berth. */
export interface HostView {
  name: string;
  datacenter: string;
  group: string;
  /** Why no new machine is placed here. Undefined if the host is open. */
  cordon: string | undefined;
  /** Why it cannot start new machines: the first fatal of its problems. Undefined if it can. */
  fault: string | undefined;
  problems: readonly HostProblem[];
  /** The volumes in its pool that may serve as base images. */
  volumes: ReadonlySet<string>;
  capabilities: Capabilities;
  /** Resources that can be sold: the host's size with overcommit, minus the reserve. */
  sellable: Size;
  /** Disk promised to volumes and images besides the domains' own disks. */
  otherDiskGb: number;
  claims: readonly Claim[];
  gpus: readonly Gpu[];
  /** How many more machines can get an address and ports. Undefined for any number. */
  addresses: number | undefined;
}

export interface Wanted extends Size {
  datacenter: string;
  group: string;
  gpuCount: number;
  gpuType: string | undefined;
  /** Base images, all of which must exist. */
  volumes?: readonly string[];
  needsUefi?: boolean;
  needsKvm?: boolean;
}

export function roomOf({ sellable, otherDiskGb, claims }: HostView): Size {
  const active = claims.filter(({ state }) => state !== 'released');
  const sum = (of: readonly Claim[], key: keyof Size): number =>
    of.reduce((total, one) => total + one[key], 0);
  return {
    vcpus: sellable.vcpus - sum(active, 'vcpus'),
    memoryMb: sellable.memoryMb - sum(active, 'memoryMb'),
    diskGb: sellable.diskGb - otherDiskGb - sum(claims, 'diskGb'),
  };
}

/** GPUs of the type that are free for a new machine. */
function freeGpus({ gpus }: HostView, type: string | undefined): Gpu[] {
  return gpus.filter((gpu) => gpu.type === type && gpu.state === 'free');
}

/** Why the host cannot have one more such machine. Undefined if it can. */
export function obstacleOf(host: HostView, wanted: Wanted): string | undefined {
  if (host.group !== wanted.group) return `it is not in the group ${wanted.group}`;
  if (host.datacenter !== wanted.datacenter) return `it is not in ${wanted.datacenter}`;
  if (host.cordon !== undefined) return `it is cordoned: ${host.cordon}`;
  if (host.fault !== undefined) return host.fault;
  if (wanted.needsUefi === true && !host.capabilities.uefi)
    return 'it has no UEFI firmware for libvirt: install one, on Debian the package ovmf';
  if (wanted.needsKvm === true && !host.capabilities.kvm)
    return 'its libvirt has no KVM, which platform.accelerator requires';
  const missing = wanted.volumes?.find((name) => !host.volumes.has(name));
  if (missing !== undefined)
    return `its pool has no ${missing}: put it there, as docs/how-to/libvirt.md shows`;
  return shortageIn(limitsOn(host, wanted));
}

function limitsOn(host: HostView, wanted: Wanted): Limit[] {
  const room = roomOf(host);
  const { gpuType = 'GPUs' } = wanted;
  return [
    { what: 'vCPUs', left: room.vcpus, needed: wanted.vcpus },
    { what: 'MiB of memory', left: room.memoryMb, needed: wanted.memoryMb },
    { what: 'GB of disk', left: room.diskGb, needed: wanted.diskGb },
    { what: 'ports and addresses', left: host.addresses ?? Number.POSITIVE_INFINITY, needed: 1 },
    { what: gpuType, left: freeGpus(host, wanted.gpuType).length, needed: wanted.gpuCount },
  ];
}

/** The hosts, with those in `avoid` marked as cordoned. */
export function withCordons(hosts: readonly HostView[], avoid: readonly string[] = []): HostView[] {
  return hosts.map((host) =>
    avoid.includes(host.name) ? { ...host, cordon: host.cordon ?? CORDONED } : host,
  );
}

/** The host as it would be without Berth's machines and without faults, which pass. */
export function withoutMachines(host: HostView): HostView {
  const claims = host.claims.filter(({ ref }) => ref === undefined);
  if (claims.length === host.claims.length) return { ...host, fault: undefined };
  const held = new Set(
    host.claims.flatMap(({ ref, pciFunctions }) => (ref === undefined ? [] : pciFunctions)),
  );
  const gpus = host.gpus.map((gpu): Gpu => {
    const isHeld = gpu.functions.some(({ address }) => held.has(address)) || gpu.state === 'dirty';
    return isHeld ? { ...gpu, state: 'free' } : gpu;
  });
  return { ...host, claims, gpus, cordon: undefined, fault: undefined, addresses: undefined };
}

/** The machines of Berth whose resources are taken. */
export const countedOn = ({ claims }: HostView): OwnerRef[] =>
  claims.flatMap(({ ref, state }) => (ref === undefined || state === 'released' ? [] : [ref]));

export function unitsOn(host: HostView, wanted: Wanted): number {
  return obstacleOf(host, wanted) === undefined ? unitsWithin(limitsOn(host, wanted)) : 0;
}

/**
 * `spread`: the emptiest host first, to limit the damage of a lost host. `pack`: the fullest, to keep room for large
 * machines.
 */
type PlacementPolicy = 'spread' | 'pack';

/** The hosts for a machine, best first; or why each host is refused. */
export type Placed =
  | { hosts: readonly HostView[] }
  | { refused: readonly { host: string; reason: string }[] };

/** Orders the hosts that have room. Deterministic. */
export function placeMachine(wanted: Wanted, hosts: readonly HostView[], policy: PlacementPolicy): Placed {
  const judged = hosts.map((host) => ({ host, reason: obstacleOf(host, wanted) }));
  const fitting = judged.flatMap(({ host, reason }) => (reason === undefined ? [host] : []));
  if (fitting.length === 0)
    return { refused: judged.map(({ host, reason = '' }) => ({ host: host.name, reason })) };
  return { hosts: fitting.toSorted((a, b) => compareHosts(a, b, wanted, policy)) };
}

/**
 * A machine without GPUs prefers hosts with few free GPUs, so that it takes no room from GPU machines. Then the
 * host's fullness decides, then its name.
 */
function compareHosts(a: HostView, b: HostView, wanted: Wanted, policy: PlacementPolicy): number {
  const sparesGpus = wanted.gpuCount === 0 ? countFree(a) - countFree(b) : 0;
  const fuller = fullnessWith(a, wanted) - fullnessWith(b, wanted);
  return sparesGpus || (policy === 'spread' ? fuller : -fuller) || (a.name < b.name ? -1 : 1);
}

const countFree = ({ gpus }: HostView): number => gpus.filter(({ state }) => state === 'free').length;

/** The used share of the host's scarcest resource, with the machine. */
function fullnessWith(host: HostView, wanted: Wanted): number {
  const room = roomOf(host);
  const parts = (['vcpus', 'memoryMb', 'diskGb'] as const).map((key) =>
    host.sellable[key] > 0 ? 1 - (room[key] - wanted[key]) / host.sellable[key] : 1,
  );
  const ofType = host.gpus.filter(({ type }) => type === wanted.gpuType).length;
  const free = freeGpus(host, wanted.gpuType).length - wanted.gpuCount;
  return Math.max(...parts, wanted.gpuCount > 0 && ofType > 0 ? 1 - free / ofType : 0);
}

/** Chooses GPUs of one NUMA node if one has enough: the node with the smallest sufficient number. */
export function chooseGpus(
  host: HostView,
  { gpuCount, gpuType }: Pick<Wanted, 'gpuCount' | 'gpuType'>,
): PciAddress[] {
  const free = freeGpus(host, gpuType).toSorted((a, b) => (a.address < b.address ? -1 : 1));
  const nodes = [...Map.groupBy(free, ({ functions }) => functions[0]?.numaNode).values()]
    .filter((gpus) => gpus.length >= gpuCount)
    .toSorted((a, b) => a.length - b.length);
  return (nodes[0] ?? free).slice(0, gpuCount).map(({ address }) => address);
}

/**
 * The verdict on a newly defined claim.
 *
 * - `held`: it fits beside every other claim.
 * - `wait`: it does not fit yet, but claims defined at the same time will back out; retry soon.
 * - `lost`: back out. `gpu`: another claim has this GPU; others may still be free.
 */
type ClaimVerdict =
  | { verdict: 'held' }
  | { verdict: 'wait' }
  | { verdict: 'lost'; reason: string; gpu?: PciAddress };

/**
 * Several processes may create on one host, and only the host knows all of them. Each defines its domain with an
 * `open` claim and then reads the host's domains. It holds the claim only if everything fits, open claims included.
 * Of two claims that do not fit together, the second define sees the first, so both are never held. This needs no
 * clock or lock, only that libvirt serialises defines.
 *
 * If open claims do not fit together, all processes order them by ref. A claim that does not fit behind those before
 * it backs out; one that fits waits for the others to do so. So one of them always gets the room.
 */
export function settleClaim(host: HostView, ref: OwnerRef): ClaimVerdict {
  const { claims } = host;
  const own = claims.find((claim) => claim.ref === ref);
  if (own === undefined) return { verdict: 'lost', reason: 'its domain is gone' };
  if (obstacleAmong(host, claims, own) === undefined) return { verdict: 'held' };
  const admitted = claims.filter(({ state }) => state !== 'open');
  const open = claims.filter(({ state }) => state === 'open');
  for (const claim of open.toSorted((a, b) => ((a.ref ?? '') < (b.ref ?? '') ? -1 : 1))) {
    const obstacle = obstacleAmong(host, [...admitted, claim], claim);
    if (obstacle === undefined) admitted.push(claim);
    else if (claim === own) return { verdict: 'lost', ...obstacle };
  }
  return { verdict: 'wait' };
}

/** Why these claims do not fit together. Undefined if they do. */
function obstacleAmong(
  host: HostView,
  claims: readonly Claim[],
  own: Claim,
): { reason: string; gpu?: PciAddress } | undefined {
  const room = roomOf({ ...host, claims });
  if (room.vcpus < 0) return { reason: `the host is short of ${-room.vcpus} vCPUs` };
  if (room.memoryMb < 0) return { reason: `the host is short of ${-room.memoryMb} MiB of memory` };
  if (room.diskGb < 0) return { reason: `the host is short of ${Math.ceil(-room.diskGb)} GB of disk` };
  const others = new Set(claims.filter((claim) => claim !== own).flatMap(({ pciFunctions }) => pciFunctions));
  const gpu = own.pciFunctions.find((address) => others.has(address));
  return gpu === undefined ? undefined : { reason: `another domain has ${gpu} as well`, gpu };
}
