import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { onTestFinished } from 'vitest';
import type { ScriptPlace } from '../hosts/host-facts.ts';
import { openHostShell } from '../hosts/host-shell.ts';

/** One PCI function of a tree. */
export interface SysfsFunction {
  /** The folders above it in `/sys/devices`, such as `pci0000:64/0000:64:00.0`. */
  below: string;
  id: string;
  class: string;
  driver?: string;
  group?: number;
  resetMethods?: string;
  /** Counts of fatal and nonfatal PCIe errors. */
  errors?: [fatal: number, nonfatal: number];
  link?: [current: number, max: number];
  /** The start of its configuration space. The default is vendor and device. */
  config?: string;
  /** Whether it is a bridge that can reset the functions below it. */
  resetsSubordinate?: boolean;
}

export type SysfsTree = Readonly<Record<string, SysfsFunction>>;

const vfio = { driver: 'vfio-pci', group: 14 };
const rootPort = { below: 'pci0000:64', id: '8086:347a', class: '0x060400', driver: 'pcieport' };

/** A workstation card: graphics and sound behind their own root port. Only the graphics function has a reset. */
export const geForce: SysfsTree = {
  '0000:64:00.0': { ...rootPort, group: 13, resetsSubordinate: true },
  '0000:65:00.0': {
    ...{ below: 'pci0000:64/0000:64:00.0', id: '10de:2684', class: '0x030000', ...vfio },
    ...{ resetMethods: 'bus', errors: [0, 0], link: [16, 16] },
  },
  '0000:65:00.1': {
    ...{ below: 'pci0000:64/0000:64:00.0', id: '10de:22ba', class: '0x040300', ...vfio },
    ...{ resetMethods: 'bus', errors: [0, 0], link: [16, 16] },
  },
};

/** Two server cards behind a switch that isolates them. Each supports function-level reset. */
export const hopper: SysfsTree = {
  '0000:15:01.0': { ...rootPort, below: 'pci0000:15', group: 20 },
  '0000:16:00.0': { ...rootPort, below: 'pci0000:15/0000:15:01.0', id: '1000:c030', group: 20 },
  '0000:17:00.0': { ...rootPort, below: 'pci0000:15/0000:15:01.0/0000:16:00.0', id: '1000:c030', group: 21 },
  '0000:17:01.0': { ...rootPort, below: 'pci0000:15/0000:15:01.0/0000:16:00.0', id: '1000:c030', group: 22 },
  '0000:18:00.0': hopperCard('0000:17:00.0', 23),
  '0000:2a:00.0': hopperCard('0000:17:01.0', 24),
};

function hopperCard(port: string, group: number): SysfsFunction {
  return {
    ...{ below: `pci0000:15/0000:15:01.0/0000:16:00.0/${port}`, id: '10de:2330', class: '0x030200' },
    ...{ driver: 'vfio-pci', group, resetMethods: 'flr bus', errors: [0, 0], link: [16, 16] },
  };
}

/** A board without ACS: both cards, their ports and a network card are in one group. */
export const withoutAcs: SysfsTree = {
  '0000:00:01.0': { ...rootPort, below: 'pci0000:00', group: 1 },
  '0000:00:01.1': { ...rootPort, below: 'pci0000:00', group: 1 },
  '0000:01:00.0': { ...hopperCard('', 1), below: 'pci0000:00/0000:00:01.0' },
  '0000:02:00.0': {
    below: 'pci0000:00/0000:00:01.1',
    id: '8086:10d3',
    class: '0x020000',
    driver: 'e1000e',
    group: 1,
  },
};

/** A host whose file system has the tree, in a folder that is deleted after the test. */
export function openHostWith(tree: SysfsTree): {
  shell: ReturnType<typeof openHostShell>;
  place: ScriptPlace & { root: string };
} {
  const root = mkdtempSync(join(tmpdir(), 'berth-sysfs-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, 'sys/bus/pci/devices'), { recursive: true });
  for (const [address, of] of Object.entries(tree)) writeFunction(root, address, of);
  return {
    shell: openHostShell({ name: 'kvm-1', uri: 'qemu:///system' }),
    place: { stateDir: '/var/lib/berth', root },
  };
}

/** The path of a function's file on such a host. */
export const sysfsFile = (root: string, address: string, file: string): string =>
  join(root, 'sys/bus/pci/devices', address, file);

function writeFunction(root: string, address: string, of: SysfsFunction): void {
  const folder = join(root, 'sys/devices', of.below, address);
  mkdirSync(folder, { recursive: true });
  link(join(root, 'sys/bus/pci/devices', address), folder);
  for (const [file, content] of Object.entries(filesOf(of))) writeFileSync(join(folder, file), content);
  if (of.driver !== undefined) link(join(folder, 'driver'), join(root, 'sys/bus/pci/drivers', of.driver));
  if (of.group === undefined) return;
  const group = join(root, 'sys/kernel/iommu_groups', String(of.group));
  link(join(folder, 'iommu_group'), group);
  link(join(group, 'devices', address), folder);
}

function filesOf({
  id,
  class: kind,
  resetMethods,
  errors,
  link: width,
  config,
  resetsSubordinate,
}: SysfsFunction) {
  const [vendor = '', device = ''] = id.split(':');
  const bytes = Buffer.from(`${vendor}${device}`, 'hex').subarray(0, 4);
  const swapped = Buffer.from([bytes[1] ?? 0, bytes[0] ?? 0, bytes[3] ?? 0, bytes[2] ?? 0]);
  return {
    vendor: `0x${vendor}\n`,
    device: `0x${device}\n`,
    class: `${kind}\n`,
    numa_node: '0\n',
    config: config === undefined ? Buffer.concat([swapped, Buffer.alloc(60)]) : Buffer.from(config, 'hex'),
    ...(resetMethods !== undefined && { reset_method: `${resetMethods}\n`, reset: '' }),
    ...(errors !== undefined && {
      aer_dev_fatal: `Undefined 0\nDLP ${errors[0]}\nTOTAL_ERR_FATAL ${errors[0]}\n`,
      aer_dev_nonfatal: `Undefined 0\nTOTAL_ERR_NONFATAL ${errors[1]}\n`,
    }),
    ...(width !== undefined && { current_link_width: `${width[0]}\n`, max_link_width: `${width[1]}\n` }),
    ...(resetsSubordinate === true && { reset_subordinate: '' }),
  };
}

function link(path: string, to: string): void {
  mkdirSync(dirname(path), { recursive: true });
  mkdirSync(to, { recursive: true });
  symlinkSync(relative(dirname(path), to), path);
}
