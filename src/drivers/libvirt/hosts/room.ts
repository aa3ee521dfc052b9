import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
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

/** A host's current state, with the claims of all its domains, from any Berth. */
export interface HostView {
  name: string;
  datacenter: string;
  group: string;
  /** Why no new machine is placed here. Undefined if the host is open. */
  cordon: string | undefined;
  /** Why libvirt cannot start new machines. Undefined if it can. */
  fault: string | undefined;
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
export function freeGpus({ gpus }: HostView, type: string | undefined): Gpu[] {
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
  if (missing !== undefined) return `its pool has no ${missing}: run berth image import`;
  const room = roomOf(host);
  if (room.vcpus < wanted.vcpus) return `it has ${room.vcpus} free vCPUs, but ${wanted.vcpus} are needed`;
  if (room.memoryMb < wanted.memoryMb)
    return `it has ${room.memoryMb} MiB of free memory, but ${wanted.memoryMb} are needed`;
  if (room.diskGb < wanted.diskGb)
    return `it has ${Math.floor(room.diskGb)} GB of free disk, but ${wanted.diskGb} are needed`;
  if (host.addresses !== undefined && host.addresses < 1) return 'it has no free port and address';
  const gpus = freeGpus(host, wanted.gpuType).length;
  if (gpus < wanted.gpuCount)
    return `it has ${gpus} free ${wanted.gpuType}, but ${wanted.gpuCount} are needed`;
  return undefined;
}

/** The hosts, with those in `avoid` marked as cordoned. */
export function withCordons(hosts: readonly HostView[], avoid: readonly string[] = []): HostView[] {
  return hosts.map((host) =>
    avoid.includes(host.name)
      ? { ...host, cordon: host.cordon ?? 'an operator has cordoned it in Berth' }
      : host,
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
