import { VirshError } from '../errors.ts';
import { runHostScript, type ScriptAnswer, type ScriptPlace } from '../hosts/host-facts.ts';
import type { HostShell } from '../hosts/host-shell.ts';

/** A PCI function in Linux notation: `0000:65:00.0`. */
export type PciAddress = string;

const PCI_ADDRESS = /^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$/;

const isPciAddress = (text: string): boolean => PCI_ADDRESS.test(text);

/** Formats domain, bus, slot and function. @throws {RangeError} */
export function toPciAddress(numbers: readonly number[]): PciAddress {
  const [domain, bus, slot, fn] = numbers.map((part, index) =>
    part.toString(16).padStart([4, 2, 2, 1][index] ?? 0, '0'),
  );
  const address = `${domain}:${bus}:${slot}.${fn}`;
  if (!isPciAddress(address)) throw new RangeError(`${address} is not a PCI address`);
  return address;
}

/** A PCI function according to sysfs. */
export interface PciFunction {
  address: PciAddress;
  /** Vendor and device, such as `10de:2684`. */
  id: string;
  /** The class without its programming interface: `0300` VGA, `0302` 3D, `1200` accelerator, `0604` bridge. */
  class: string;
  driver: string | undefined;
  /** Its IOMMU group. Undefined if the IOMMU is off. */
  group: string | undefined;
  /** The kernel's reset methods for it, best first: `flr`, `pm`, `bus`, … */
  resetMethods: readonly string[];
  /** The bridge above. Undefined if it is on the root bus. */
  bridge: PciAddress | undefined;
  /** Whether that bridge can reset everything below it. */
  canResetBus: boolean;
  /**
   * The current vendor and device in its configuration space. Undefined if it cannot be read. `ffff:ffff` means that it
   * is off the bus.
   */
  answersAs: string | undefined;
  /** PCIe error counts. Undefined if the function does not report them. */
  fatalErrors: number | undefined;
  nonfatalErrors: number | undefined;
  /** Its NUMA node. -1 if the host has only one. */
  numaNode: number | undefined;
  linkWidth: number | undefined;
}

/** The state of a GPU in its mark on the host: used by a machine since its last reset, or out of use for a reason. */
export type GpuMark = string;

/** The PCI functions that affect GPUs, and the marks in the state folder. */
export interface GpuScan {
  functions: ReadonlyMap<PciAddress, PciFunction>;
  marks: ReadonlyMap<PciAddress, GpuMark>;
}

/** @throws {VirshError} */
export async function scanGpus(host: HostShell, place: ScriptPlace): Promise<GpuScan> {
  const answer = await runHostScript(host, place, ['gpus']);
  if (answer.status !== 0)
    throw new VirshError(
      'unreachable',
      `${host.name}: its PCI devices cannot be read: ${answer.stderr.trim().slice(0, 300)}`,
    );
  return readGpuScan(answer);
}

function readGpuScan({ lines }: Pick<ScriptAnswer, 'lines'>): GpuScan {
  const fields = new Map<PciAddress, Map<string, string>>();
  const marks = new Map<PciAddress, GpuMark>();
  for (const [kind, address = '', key = '', value = ''] of lines) {
    if (!isPciAddress(address)) continue;
    if (kind === 'mark') marks.set(address, key);
    if (kind !== 'pci') continue;
    const known = fields.get(address) ?? new Map<string, string>();
    fields.set(address, known.set(key, value));
  }
  const functions = [...fields].map(([address, known]) => [address, toFunction(address, known)] as const);
  return { functions: new Map(functions), marks };
}

function toFunction(address: PciAddress, fields: ReadonlyMap<string, string>): PciFunction {
  const text = (key: string): string | undefined => fields.get(key) || undefined;
  const count = (key: string): number | undefined =>
    text(key) === undefined ? undefined : Number(text(key));
  const hex = (key: string): string => (text(key) ?? '').replace(/^0x/, '');
  const bridge = text('bridge');
  return {
    address,
    id: `${hex('vendor')}:${hex('device')}`,
    class: hex('class').slice(0, 4),
    driver: text('driver'),
    group: text('group'),
    resetMethods: (text('reset_method') ?? '').split(' ').filter(Boolean),
    bridge: bridge !== undefined && isPciAddress(bridge) ? bridge : undefined,
    canResetBus: text('bus_reset') === 'yes',
    answersAs: toIds(text('config')),
    fatalErrors: count('fatal'),
    nonfatalErrors: count('nonfatal'),
    numaNode: count('numa_node'),
    linkWidth: count('current_link_width'),
  };
}

/** Vendor and device from the first four bytes of the configuration space, little-endian. */
function toIds(config: string | undefined): string | undefined {
  const [, vendorLow, vendorHigh, deviceLow, deviceHigh] = /^(..)(..)(..)(..)$/.exec(config ?? '') ?? [];
  return vendorLow === undefined ? undefined : `${vendorHigh}${vendorLow}:${deviceHigh}${deviceLow}`;
}
