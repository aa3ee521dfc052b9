import { createHash } from 'node:crypto';
import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import { type PciAddress, toPciAddress } from './gpus/pci-functions.ts';
import { type MachineMark, markOf, type ReleaseMark, releaseOf, toMarkElement } from './machine-mark.ts';
import { childrenOf, descend, element, parseXml, serializeXml, textOf, type XmlElement } from './xml.ts';

/** The libvirt filter on each card. It prevents machines from using other machines' addresses. */
export const NETWORK_FILTER = 'clean-traffic';

/** How QEMU runs a guest: with hardware virtualization, or by emulation. */
export type Accelerator = 'kvm' | 'tcg';

/** The network of a machine's card: a libvirt network or a bridge of the host. */
export type NetworkSource = { network: string } | { bridge: string };

/** Everything that defines a domain. Paths are on the host. */
export interface DomainSpec {
  /** Its owner ref. */
  name: string;
  accelerator: Accelerator;
  /** The CPU of a guest on KVM: the host's own, or libvirt's closest model of it. On TCG: all features of QEMU. */
  kvmCpu: 'host-passthrough' | 'host-model';
  vcpus: number;
  memoryMb: number;
  /** UEFI, which guests with large-memory GPUs need, instead of BIOS. */
  uefi: boolean;
  /** A qcow2 overlay. */
  rootDiskPath: string;
  /** The NoCloud disk. */
  seedPath: string;
  network: NetworkSource;
  /** The file for the output of the guest's serial console. */
  consolePath: string;
  /** How many volumes can be attached while it runs. */
  hotplugSlots: number;
  /** PCI functions passed to the guest, all bound to vfio-pci in advance. */
  pciFunctions: readonly PciAddress[];
  mark: MachineMark;
}

/** Disk, seed, card and random number generator each need a port. */
const OWN_DEVICES = 4;

/** The domain as libvirt XML. @throws {XmlError} for text that XML cannot contain */
export function toDomainXml(spec: DomainSpec): string {
  const { name, accelerator, kvmCpu, vcpus, memoryMb } = spec;
  return serializeXml(
    element('domain', { type: accelerator === 'kvm' ? 'kvm' : 'qemu' }, [
      element('name', {}, [name]),
      element('uuid', {}, [uuidOf(name)]),
      element('metadata', {}, [toMarkElement(spec.mark)]),
      element('memory', { unit: 'MiB' }, [String(memoryMb)]),
      element('vcpu', { placement: 'static' }, [String(vcpus)]),
      osOf(spec),
      element('features', {}, [element('acpi'), element('apic')]),
      element('cpu', { mode: accelerator === 'kvm' ? kvmCpu : 'maximum' }),
      element('clock', { offset: 'utc' }),
      element('on_poweroff', {}, ['destroy']),
      element('on_reboot', {}, ['restart']),
      element('on_crash', {}, ['destroy']),
      // A guest that suspends itself would be STOPPED and keep its resources without paying for them.
      element('pm', {}, [
        element('suspend-to-mem', { enabled: 'no' }),
        element('suspend-to-disk', { enabled: 'no' }),
      ]),
      element('devices', {}, devicesOf(spec)),
    ]),
  );
}

function osOf({ uefi }: DomainSpec): XmlElement {
  return element('os', uefi ? { firmware: 'efi' } : {}, [
    element('type', { arch: 'x86_64', machine: 'q35' }, ['hvm']),
    element('boot', { dev: 'hd' }),
  ]);
}

function devicesOf(spec: DomainSpec): XmlElement[] {
  const ports = OWN_DEVICES + spec.pciFunctions.length + spec.hotplugSlots;
  return [
    element('controller', { type: 'pci', index: 0, model: 'pcie-root' }),
    ...Array.from({ length: ports }, () => element('controller', { type: 'pci', model: 'pcie-root-port' })),
    element('controller', { type: 'usb', model: 'none' }),
    diskOf({ path: spec.rootDiskPath, format: 'qcow2', target: 'vda', serial: 'root' }),
    diskOf({ path: spec.seedPath, format: 'raw', target: 'vdb', serial: 'seed', readOnly: true }),
    cardOf(spec),
    element('serial', { type: 'file' }, [
      element('source', { path: spec.consolePath, append: 'on' }),
      element('target', { port: 0 }),
    ]),
    element('rng', { model: 'virtio' }, [element('backend', { model: 'random' }, ['/dev/urandom'])]),
    element('memballoon', { model: 'none' }),
    ...spec.pciFunctions.map(hostdevOf),
  ];
}

/** A disk of a domain: the overlay, the seed, or an attached volume. */
export interface DomainDisk {
  path: string;
  format: 'qcow2' | 'raw';
  /** Its libvirt target, such as `vdc`; the guest may name it differently. */
  target: string;
  serial: string;
  readOnly?: boolean;
}

function diskOf({ path, format, target, serial, readOnly = false }: DomainDisk): XmlElement {
  return element('disk', { type: 'file', device: 'disk' }, [
    element('driver', { name: 'qemu', type: format, discard: readOnly ? undefined : 'unmap' }),
    element('source', { file: path }),
    element('target', { dev: target, bus: 'virtio' }),
    ...(readOnly ? [element('readonly')] : []),
    element('serial', {}, [serial]),
  ]);
}

export const toDiskXml = (disk: DomainDisk): string => serializeXml(diskOf(disk));

/** The card. Its bridge blocks traffic to other cards, and the filter blocks addresses of other machines. */
function cardOf({ name, network, mark }: DomainSpec): XmlElement {
  const [parameter, value] = mark.nat === undefined ? ['CTRL_IP_LEARNING', 'dhcp'] : ['IP', mark.nat.address];
  return element('interface', { type: 'bridge' in network ? 'bridge' : 'network' }, [
    element('mac', { address: macOf(name) }),
    element('source', { ...network }),
    element('model', { type: 'virtio' }),
    element('filterref', { filter: NETWORK_FILTER }, [element('parameter', { name: parameter, value })]),
    element('port', { isolated: 'yes' }),
  ]);
}

/**
 * `managed='no'`: the function stays bound to vfio-pci from the host's boot on. Otherwise libvirt would return it to
 * the host's driver after each guest, before it is reset and checked.
 */
export function hostdevOf(address: PciAddress): XmlElement {
  const [domain, bus, slot, fn] = address.split(/[:.]/).map((part) => `0x${part}`);
  return element('hostdev', { mode: 'subsystem', type: 'pci', managed: 'no' }, [
    element('driver', { name: 'vfio' }),
    element('source', {}, [element('address', { domain, bus, slot, function: fn })]),
  ]);
}

/** The MAC address of a machine's card: constant for a ref, from QEMU's range of 16 million. */
export function macOf(ref: OwnerRef): string {
  const [a, b, c] = createHash('sha256').update(`mac ${ref}`).digest();
  return ['52', '54', '00', ...[a, b, c].map((byte) => (byte ?? 0).toString(16).padStart(2, '0'))].join(':');
}

/** The UUID of a machine's domain. It is constant for a ref, so that a repeated define gives the same domain. */
export function uuidOf(ref: OwnerRef): string {
  const bytes = createHash('sha256').update(`uuid ${ref}`).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Whether the domain is a machine of Berth, under any name. A domain whose UUID does not match its mark is a copy. */
export const isMachine = ({ uuid, mark }: Pick<DefinedDomain, 'uuid' | 'mark'>): boolean =>
  mark !== undefined && uuid === uuidOf(mark.ref);

export interface DefinedDomain {
  name: string;
  uuid: string;
  vcpus: number;
  memoryMb: number;
  /** The MAC address of its first card, in lower case. */
  mac: string | undefined;
  /** The host's device and bridge of its card while it runs. */
  card: { device: string; bridge: string } | undefined;
  disks: { target: string; path: string | undefined; serial: string }[];
  /** PCI functions in its definition. */
  pciFunctions: PciAddress[];
  /** Undefined if the domain is not Berth's. */
  mark: MachineMark | undefined;
  /** Set if it was a machine and has been released. */
  release: ReleaseMark | undefined;
}

export interface HostDomain extends DefinedDomain {
  /** True also while it is paused. */
  running: boolean;
  /** Its processors may be halted. */
  isPaused: boolean;
  /** Libvirt does not answer about it: all else is as it was in the last complete list. */
  isSilent?: true;
}

/** Parses `virsh dumpxml`. @throws {XmlError} */
export const readDomainXml = (xml: string): DefinedDomain => readDomainElement(parseXml(xml));

export function readDomainElement(domain: XmlElement): DefinedDomain {
  const devices = descend(domain, 'devices') ?? element('devices');
  return {
    name: textOf(descend(domain, 'name')),
    uuid: textOf(descend(domain, 'uuid')),
    vcpus: Number(textOf(descend(domain, 'vcpu'))),
    memoryMb: toMebibytes(descend(domain, 'memory')),
    mac: descend(devices, 'interface', 'mac')?.attributes['address']?.toLowerCase(),
    card: cardAt(devices),
    disks: childrenOf(devices, 'disk').map((disk) => ({
      target: descend(disk, 'target')?.attributes['dev'] ?? '',
      path: descend(disk, 'source')?.attributes['file'],
      serial: textOf(descend(disk, 'serial')),
    })),
    pciFunctions: childrenOf(devices, 'hostdev').flatMap(pciFunctionOf),
    mark: markOf(descend(domain, 'metadata')),
    release: releaseOf(descend(domain, 'metadata')),
  };
}

function cardAt(devices: XmlElement): DefinedDomain['card'] {
  const device = descend(devices, 'interface', 'target')?.attributes['dev'];
  const bridge = descend(devices, 'interface', 'source')?.attributes['bridge'];
  return device === undefined || bridge === undefined ? undefined : { device, bridge };
}

function pciFunctionOf(hostdev: XmlElement): PciAddress[] {
  const { domain, bus, slot, function: fn } = descend(hostdev, 'source', 'address')?.attributes ?? {};
  if (hostdev.attributes['type'] !== 'pci' || bus === undefined) return [];
  return [toPciAddress([domain ?? '0', bus, slot ?? '0', fn ?? '0'].map(Number))];
}

const KIBIBYTES: Readonly<Record<string, number>> = {
  b: 1 / 1024,
  bytes: 1 / 1024,
  KiB: 1,
  k: 1,
  MiB: 1024,
  M: 1024,
  GiB: 1024 ** 2,
  G: 1024 ** 2,
  TiB: 1024 ** 3,
  T: 1024 ** 3,
};

function toMebibytes(memory: XmlElement | undefined): number {
  const { unit = 'KiB' } = memory?.attributes ?? {};
  return Math.ceil((Number(textOf(memory)) * (KIBIBYTES[unit] ?? Number.NaN)) / 1024);
}
