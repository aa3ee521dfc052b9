import { createHash } from 'node:crypto';
import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import { type PciAddress, toPciAddress } from './gpus/pci-address.ts';
import { type MachineMark, markOf, type ReleaseMark, releaseOf, toMarkElement } from './machine-mark.ts';
import { childrenOf, descend, element, parseXml, serializeXml, textOf, type XmlElement } from './xml.ts';

/** How QEMU runs a guest: with the processor's own virtualization, or by translating its instructions. */
export type Accelerator = 'kvm' | 'tcg';

/** Where a machine's network card is plugged in: a network of libvirt, or a bridge of the host. */
export type NetworkSource = { network: string } | { bridge: string };

/** All that a domain is defined from. Paths are the host's. */
export interface DomainSpec {
  /** Its owner ref. */
  name: string;
  accelerator: Accelerator;
  /** What a guest on KVM sees: the host's processor itself, or libvirt's nearest model of it. On TCG all that QEMU has. */
  kvmCpu?: 'host-passthrough' | 'host-model';
  vcpus: number;
  memoryMb: number;
  /** A kernel that QEMU loads itself; absent: the disk has a boot loader. */
  kernel?: { kernel: string; initrd: string; commandLine: string };
  /** UEFI, which guests with GPUs of much memory need; absent: BIOS. */
  uefi?: boolean;
  /** A qcow2 overlay. The guest finds it by its serial. */
  rootDisk: { path: string; serial: string };
  /** The NoCloud disk. */
  seedPath: string;
  network: NetworkSource;
  /** A filter of libvirt for the card, with its parameters. */
  networkFilter?: { name: string; parameters: Readonly<Record<string, string>> };
  /** Whether the bridge passes nothing between it and other isolated cards. */
  isolated?: boolean;
  /** Where the guest's serial console is written to. */
  consolePath: string;
  /** How many volumes can be plugged in while it runs. */
  hotplugSlots: number;
  /** PCI functions that are given to the guest, each bound to vfio-pci beforehand. */
  pciFunctions: readonly PciAddress[];
  mark: MachineMark;
}

/** Disk, seed, card, random numbers: each sits behind a port of its own. */
const OWN_DEVICES = 4;

/** The domain as libvirt reads it. @throws {XmlError} for text that XML cannot hold */
export function toDomainXml(spec: DomainSpec): string {
  const { name, accelerator, vcpus, memoryMb } = spec;
  return serializeXml(
    element('domain', { type: accelerator === 'kvm' ? 'kvm' : 'qemu' }, [
      element('name', {}, [name]),
      element('uuid', {}, [uuidOf(name)]),
      element('metadata', {}, [toMarkElement(spec.mark)]),
      element('memory', { unit: 'MiB' }, [String(memoryMb)]),
      element('vcpu', { placement: 'static' }, [String(vcpus)]),
      osOf(spec),
      element('features', {}, [element('acpi'), element('apic')]),
      cpuOf(spec),
      element('clock', { offset: 'utc' }),
      element('on_poweroff', {}, ['destroy']),
      element('on_reboot', {}, ['restart']),
      element('on_crash', {}, ['destroy']),
      // A guest that suspended itself would be STOPPED, and keep its part of the host without paying for it.
      element('pm', {}, [
        element('suspend-to-mem', { enabled: 'no' }),
        element('suspend-to-disk', { enabled: 'no' }),
      ]),
      element('devices', {}, devicesOf(spec)),
    ]),
  );
}

function osOf({ kernel, uefi }: DomainSpec): XmlElement {
  const type = element('type', { arch: 'x86_64', machine: 'q35' }, ['hvm']);
  if (kernel === undefined)
    return element('os', uefi === true ? { firmware: 'efi' } : {}, [type, element('boot', { dev: 'hd' })]);
  return element('os', {}, [
    type,
    element('kernel', {}, [kernel.kernel]),
    element('initrd', {}, [kernel.initrd]),
    element('cmdline', {}, [kernel.commandLine]),
  ]);
}

function cpuOf({ accelerator, kvmCpu = 'host-passthrough' }: DomainSpec): XmlElement {
  return element('cpu', { mode: accelerator === 'kvm' ? kvmCpu : 'maximum' });
}

function devicesOf(spec: DomainSpec): XmlElement[] {
  const ports = OWN_DEVICES + spec.pciFunctions.length + spec.hotplugSlots;
  return [
    element('controller', { type: 'pci', index: 0, model: 'pcie-root' }),
    ...Array.from({ length: ports }, () => element('controller', { type: 'pci', model: 'pcie-root-port' })),
    element('controller', { type: 'usb', model: 'none' }),
    diskOf({ path: spec.rootDisk.path, format: 'qcow2', target: 'vda', serial: spec.rootDisk.serial }),
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

/** A disk of a domain: the overlay, the seed, or a volume that is plugged in. */
export interface DomainDisk {
  path: string;
  format: 'qcow2' | 'raw';
  /** Its name in libvirt, such as `vdc`; what the guest calls it may differ. */
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

/** A disk by itself, for `virsh attach-device` and `detach-device`. */
export const toDiskXml = (disk: DomainDisk): string => serializeXml(diskOf(disk));

function cardOf({ name, network, networkFilter, isolated = false }: DomainSpec): XmlElement {
  const isBridge = 'bridge' in network;
  return element('interface', { type: isBridge ? 'bridge' : 'network' }, [
    element('mac', { address: macOf(name) }),
    element('source', { ...network }),
    element('model', { type: 'virtio' }),
    ...(networkFilter === undefined ? [] : [filterOf(networkFilter)]),
    ...(isolated ? [element('port', { isolated: 'yes' })] : []),
  ]);
}

function filterOf({ name, parameters }: NonNullable<DomainSpec['networkFilter']>): XmlElement {
  return element(
    'filterref',
    { filter: name },
    Object.entries(parameters).map(([key, value]) => element('parameter', { name: key, value })),
  );
}

/**
 * `managed='no'`: the function is bound to vfio-pci when the host boots and stays so. Otherwise libvirt would give it
 * back to the host's own driver after each guest, before it was reset and looked at.
 */
export function hostdevOf(address: PciAddress): XmlElement {
  const [domain, bus, slot, fn] = address.split(/[:.]/).map((part) => `0x${part}`);
  return element('hostdev', { mode: 'subsystem', type: 'pci', managed: 'no' }, [
    element('driver', { name: 'vfio' }),
    element('source', {}, [element('address', { domain, bus, slot, function: fn })]),
  ]);
}

/** The address of a machine's card: always the same for a ref, in QEMU's own range of 16 million. */
export function macOf(ref: OwnerRef): string {
  const [a, b, c] = createHash('sha256').update(`mac ${ref}`).digest();
  return ['52', '54', '00', ...[a, b, c].map((byte) => (byte ?? 0).toString(16).padStart(2, '0'))].join(':');
}

/** The same for a ref, so that a repeated define is the same domain. */
export function uuidOf(ref: OwnerRef): string {
  const bytes = createHash('sha256').update(`uuid ${ref}`).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** A machine of ours, under whatever name: a domain with the mark of another UUID is a copy that somebody made. */
export const isMachine = ({ uuid, mark }: Pick<DefinedDomain, 'uuid' | 'mark'>): boolean =>
  mark !== undefined && uuid === uuidOf(mark.ref);

/** A domain as the host has it, ours or another's. */
export interface DefinedDomain {
  name: string;
  uuid: string;
  vcpus: number;
  memoryMb: number;
  /** The card's first address, in lower case. */
  mac: string | undefined;
  /** Where its card is plugged in while it runs. */
  card: { device: string; bridge: string } | undefined;
  disks: { target: string; path: string | undefined; serial: string }[];
  /** Functions of PCI that it is defined with. */
  pciFunctions: PciAddress[];
  /** Absent: the domain is none of ours. */
  mark: MachineMark | undefined;
  /** It was a machine, and was released. */
  release: ReleaseMark | undefined;
}

/** Reads `virsh dumpxml`. @throws {XmlError} */
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
