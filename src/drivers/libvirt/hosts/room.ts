import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import type { Gpu } from '../gpus/gpus.ts';
import type { PciAddress } from '../gpus/pci-address.ts';
import type { ClaimState } from '../machine-mark.ts';
import type { Capabilities } from './capabilities.ts';

export interface Size {
  vcpus: number;
  memoryMb: number;
  diskGb: number;
}

/** What a domain takes of its host: its definition is the claim. */
export interface Claim extends Size {
  /** Undefined: the domain is another's. */
  ref: OwnerRef | undefined;
  /** Of another's domain: `held` while it runs, `released` otherwise. */
  state: ClaimState;
  /** Every PCI function that it names. */
  pciFunctions: readonly PciAddress[];
}

/** A host as it is now, with what all its domains take, whichever Berth defined them. */
export interface HostView {
  name: string;
  datacenter: string;
  group: string;
  /** Why nothing new is placed here; undefined: it is open. */
  cordon: string | undefined;
  /** Why libvirt would start nothing new here; undefined: it would. */
  fault: string | undefined;
  /** The volumes of its pool that a machine could be made from. */
  volumes: ReadonlySet<string>;
  capabilities: Capabilities;
  /** What there is to promise: the host's own size, with overcommit, less what is left to the host. */
  sellable: Size;
  /** What volumes and images promise of the pool beside the domains' own disks. */
  otherDiskGb: number;
  claims: readonly Claim[];
  gpus: readonly Gpu[];
  /** Addresses and ports for so many more machines; undefined: any number. */
  addresses: number | undefined;
}

/** What a machine needs of a host. */
export interface Wanted extends Size {
  datacenter: string;
  group: string;
  gpuCount: number;
  gpuType: string | undefined;
  /** What it may be made from: all of them have to be there. */
  volumes?: readonly string[];
  needsUefi?: boolean;
  needsKvm?: boolean;
}

/** What is left; negative where more was promised than there is. */
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

/** GPUs of the type that a new machine could have. */
export function freeGpus({ gpus }: HostView, type: string | undefined): Gpu[] {
  return gpus.filter((gpu) => gpu.type === type && gpu.state === 'free');
}

/** Why a host cannot have one more machine like this; undefined: it can. */
export function obstacleOf(host: HostView, wanted: Wanted): string | undefined {
  if (host.group !== wanted.group) return `it is not in the group ${wanted.group}`;
  if (host.datacenter !== wanted.datacenter) return `it is not in ${wanted.datacenter}`;
  if (host.cordon !== undefined) return `it is cordoned: ${host.cordon}`;
  if (host.fault !== undefined) return host.fault;
  if (wanted.needsUefi === true && !host.capabilities.uefi)
    return 'its libvirt has no UEFI firmware: the Debian package ovmf has one';
  if (wanted.needsKvm === true && !host.capabilities.kvm)
    return 'its libvirt has no KVM, which platform.accelerator asks for';
  const missing = wanted.volumes?.find((name) => !host.volumes.has(name));
  if (missing !== undefined) return `its pool has no ${missing}: berth image import puts it there`;
  const room = roomOf(host);
  if (room.vcpus < wanted.vcpus) return `it has ${room.vcpus} vCPUs left of ${wanted.vcpus}`;
  if (room.memoryMb < wanted.memoryMb)
    return `it has ${room.memoryMb} MiB of memory left of ${wanted.memoryMb}`;
  if (room.diskGb < wanted.diskGb)
    return `it has ${Math.floor(room.diskGb)} GB of disk left of ${wanted.diskGb}`;
  if (host.addresses !== undefined && host.addresses < 1) return 'it has no port and address left';
  const gpus = freeGpus(host, wanted.gpuType).length;
  if (gpus < wanted.gpuCount) return `it has ${gpus} free ${wanted.gpuType} of ${wanted.gpuCount}`;
  return undefined;
}

/** The hosts, with those cordoned that an operator of Berth has. */
export function withCordons(hosts: readonly HostView[], avoid: readonly string[] = []): HostView[] {
  return hosts.map((host) =>
    avoid.includes(host.name)
      ? { ...host, cordon: host.cordon ?? 'an operator has cordoned it in Berth' }
      : host,
  );
}

/** The machines of ours whose room is taken. */
export const countedOn = ({ claims }: HostView): OwnerRef[] =>
  claims.flatMap(({ ref, state }) => (ref === undefined || state === 'released' ? [] : [ref]));

/** How many machines like this a host could have more. */
export function unitsOn(host: HostView, wanted: Wanted): number {
  if (obstacleOf(host, wanted) !== undefined) return 0;
  const room = roomOf(host);
  const fits = [
    [room.vcpus, wanted.vcpus],
    [room.memoryMb, wanted.memoryMb],
    [room.diskGb, wanted.diskGb],
    [freeGpus(host, wanted.gpuType).length, wanted.gpuCount],
  ] as const;
  return Math.min(
    host.addresses ?? Number.POSITIVE_INFINITY,
    ...fits.flatMap(([has, each]) => (each > 0 ? Math.floor(has / each) : [])),
  );
}
