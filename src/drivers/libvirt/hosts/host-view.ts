import { basename } from 'node:path';
import type { Host } from '../client.ts';
import { type HostDomain, isMachine, NETWORK_FILTER } from '../domain-xml.ts';
import { onProblem, VirshError } from '../errors.ts';
import { type GpuTypes, listGpus } from '../gpus/gpus.ts';
import { scanGpus } from '../gpus/pci-functions.ts';
import { hasNetworkFilter, natUnits, takenPorts } from '../network.ts';
import type { HostOptions } from '../options.ts';
import { descend, parseXml, textOf } from '../xml.ts';
import { observeDomains } from './domains.ts';
import {
  type Capabilities,
  DOMCAPABILITIES,
  type HostFacts,
  readCapabilities,
  readHostFacts,
  runHostScript,
} from './host-facts.ts';
import type { HostShell } from './host-shell.ts';
import type { Claim, HostProblem, HostView, Size } from './room.ts';

interface Hardware {
  vcpus: number;
  memoryMb: number;
  /** The pool as libvirt counts it, which may be older than its file system. */
  pool: Disk;
  /** The pool's folder on the host. */
  folder: string;
  capabilities: Capabilities;
  problems: readonly HostProblem[];
}

interface Disk {
  sizeGb: number;
  freeGb: number;
}

const GIB = 1024 ** 3;
/** A pool with less is full: the files of one more machine need it, besides what the machine writes. */
export const LEAST_FREE_GB = 0.1;

/** Reads a host's resources and the claims of its domains. @throws {VirshError} if the host does not answer */
export async function readHostView(host: Host, shell: HostShell, gpuTypes: GpuTypes): Promise<HostView> {
  const { options } = host;
  const place = { stateDir: options.state_dir };
  const sellsGpus = Object.keys(gpuTypes).length > 0;
  // It also refreshes the pool.
  const hardware = await readHardware(host);
  const [facts, domains, volumes, scan] = await Promise.all([
    readHostFacts(shell, place, hardware.folder),
    observeDomains(host, shell),
    listVolumes(host).catch(onProblem('no_pool', [])),
    sellsGpus ? scanGpus(shell, place) : undefined,
  ]);
  const disk = facts.filesystem ?? hardware.pool;
  const problems = [
    ...hardware.problems,
    ...problemsOfShell(options, facts, disk),
    ...(await missingBridge(options, shell)),
  ];
  const claims = domains.map(toClaim);
  const claimed = new Set(claims.flatMap(({ pciFunctions }) => pciFunctions));
  return {
    name: host.name,
    datacenter: options.datacenter,
    group: options.group,
    cordon: undefined,
    fault: problems.find(({ isFatal }) => isFatal)?.finding,
    problems,
    volumes: new Set(volumes.map(({ path }) => basename(path))),
    capabilities: hardware.capabilities,
    sellable: sellableOf(hardware, volumes, disk, options),
    otherDiskGb: otherDiskGb(volumes, domains),
    claims,
    gpus: scan === undefined ? [] : listGpus(scan, gpuTypes, claimed),
    addresses: freeAddresses(options, domains),
  };
}

function freeAddresses({ network }: HostOptions, domains: readonly HostDomain[]): number | undefined {
  if (network.mode !== 'nat') return undefined;
  return natUnits(network) - takenPorts(domains).size;
}

const fatal = (finding: string, remedy: string): HostProblem => ({ finding, remedy, isFatal: true });
const harmless = (finding: string, remedy: string): HostProblem => ({ finding, remedy, isFatal: false });

function problemsOfShell(
  { pool, reserve, state_dir: stateDir }: HostOptions,
  { filesystem, missing, canWriteState }: HostFacts,
  { freeGb }: Disk,
): HostProblem[] {
  const found: HostProblem[] = [];
  if (filesystem?.isReadOnly)
    found.push(
      fatal(
        `the file system of its pool ${pool}, ${filesystem.mount}, is read-only`,
        `See the host's kernel log (dmesg), repair the file system, then: mount -o remount,rw ${filesystem.mount}`,
      ),
    );
  const free = freeGb.toFixed(1);
  if (freeGb < LEAST_FREE_GB)
    found.push(fatal(`its pool is full: ${free} GB are free`, 'Free some disk space.'));
  else if (freeGb < reserve.disk_gb)
    found.push(
      fatal(
        `its pool has ${free} GB free, less than reserve.disk_gb, ${reserve.disk_gb}`,
        'Free some disk space, or lower reserve.disk_gb.',
      ),
    );
  // The host refuses commands that come too late only with these.
  if (missing !== undefined)
    found.push(
      fatal(
        `it has no ${missing}`,
        'Install it on the host; Debian: libvirt-clients has virsh, util-linux has flock.',
      ),
    );
  if (!canWriteState)
    found.push(
      fatal(
        `its state folder ${stateDir} cannot be written`,
        `On the host: install -d -o USER ${stateDir}, for the user that Berth logs in as.`,
      ),
    );
  return found;
}

/** What the files of others take of the pool's file system cannot be sold, although it counts as its size. */
function sellableOf(
  hardware: Hardware,
  volumes: readonly Volume[],
  { sizeGb, freeGb }: Disk,
  { reserve, overcommit }: HostOptions,
): Size {
  const ownGb = freeGb + volumes.reduce((total, { allocatedGb }) => total + allocatedGb, 0);
  return {
    vcpus: Math.floor(hardware.vcpus * overcommit.vcpus) - reserve.vcpus,
    memoryMb: Math.floor(hardware.memoryMb - reserve.memory_gb * 1024),
    diskGb: Math.floor(Math.min(sizeGb, ownGb) * overcommit.disk - reserve.disk_gb),
  };
}

async function readHardware(host: Host): Promise<Hardware> {
  const { pool, network } = host.options;
  const net = network.mode === 'nat' ? `net-info ${network.network}; ` : '';
  // The last command, which never fails, decides the result.
  const text = await host.virsh([
    `${DOMCAPABILITIES}; pool-refresh ${pool}; pool-info --bytes ${pool}; pool-dumpxml ${pool}; ${net}nwfilter-list; nodeinfo`,
  ]);
  const isPoolUp = /^State:\s+running/m.test(text);
  const value = (name: string): number => {
    const [, number] = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text) ?? [];
    if (number === undefined)
      throw new VirshError('other', `${host.name}: libvirt does not report its ${name}`);
    return Number(number);
  };
  return {
    vcpus: value('CPU\\(s\\)'),
    memoryMb: Math.floor(value('Memory size') / 1024),
    // The fault already closes the host.
    pool: isPoolUp
      ? { sizeGb: value('Capacity') / GIB, freeGb: value('Available') / GIB }
      : { sizeGb: 0, freeGb: Number.POSITIVE_INFINITY },
    folder: isPoolUp
      ? textOf(descend(parseXml(/<pool[\s\S]*<\/pool>/.exec(text)?.[0] ?? '<pool/>'), 'target', 'path'))
      : '',
    capabilities: readCapabilities(text),
    problems: problemsOfLibvirt(host.options, text, isPoolUp),
  };
}

function problemsOfLibvirt({ pool, network }: HostOptions, text: string, isPoolUp: boolean): HostProblem[] {
  const found: HostProblem[] = [];
  const [ofPool = '', ofNetwork = ''] = text.split(/<pool[\s\S]*<\/pool>/);
  const isManual = (part: string): boolean => /^Autostart:\s+no/m.test(part);
  const startPool = `virsh pool-start ${pool} && virsh pool-autostart ${pool}`;
  if (!isPoolUp)
    found.push(
      fatal(
        `its pool ${pool} is not active`,
        `${startPool}. If there is none, first virsh pool-define-as ${pool} dir --target /var/lib/libvirt/images/${pool} && virsh pool-build ${pool}`,
      ),
    );
  else if (isManual(ofPool))
    found.push(harmless(`its pool ${pool} does not start with the host`, `virsh pool-autostart ${pool}`));
  if (network.mode === 'nat') {
    const { network: net } = network;
    if (!/^Active:\s+yes/m.test(text))
      found.push(
        fatal(
          'its network is not active: nothing reaches the machines of this host',
          `virsh net-start ${net} && virsh net-autostart ${net} && systemctl restart libvirtd, which reattaches the interfaces of running guests. If there is none, first virsh net-define, as docs/how-to/libvirt.md shows.`,
        ),
      );
    else if (isManual(ofNetwork))
      found.push(harmless(`its network ${net} does not start with the host`, `virsh net-autostart ${net}`));
  }
  if (!hasNetworkFilter(text))
    found.push(
      fatal(
        `it has no network filter ${NETWORK_FILTER}, which stops machines from using addresses of other machines`,
        'Install the filters of libvirt; Debian: libvirt-daemon-config-nwfilter.',
      ),
    );
  return found;
}

async function missingBridge(
  { network, state_dir: stateDir }: HostOptions,
  shell: HostShell,
): Promise<HostProblem[]> {
  if (network.mode !== 'bridged') return [];
  const { lines } = await runHostScript(shell, { stateDir }, ['exists', `/sys/class/net/${network.bridge}`]);
  if (lines.length > 0) return [];
  const remedy = 'Create it in the network configuration of the host, and add the network interface to it.';
  return [fatal(`it has no bridge ${network.bridge}`, remedy)];
}

function toClaim(domain: HostDomain): Claim {
  const { vcpus, memoryMb, pciFunctions, running } = domain;
  // A copy has the machine's mark, but counts as another owner's domain.
  const mark = isMachine(domain) ? domain.mark : undefined;
  return {
    ref: mark?.ref,
    state: mark?.claim ?? (running ? 'held' : 'released'),
    vcpus,
    memoryMb,
    diskGb: mark?.diskGb ?? 0,
    pciFunctions: [...new Set([...pciFunctions, ...(domain.mark?.gpus ?? [])])],
  };
}

interface Volume {
  path: string;
  capacityGb: number;
  allocatedGb: number;
}

const UNITS: Readonly<Record<string, number>> = {
  B: 1 / GIB,
  KiB: 1 / 1024 ** 2,
  MiB: 1 / 1024,
  GiB: 1,
  TiB: 1024,
};

/** Path, type, capacity and allocation. */
const VOLUME_LINE = /\s(\/.*?)\s{2,}\S+\s+([\d.]+ [KMGT]?i?B)\s+([\d.]+ [KMGT]?i?B)\s/;

async function listVolumes(host: Host): Promise<Volume[]> {
  const text = await host.virsh(['vol-list', '--details', '--pool', host.options.pool]);
  return text.split('\n').flatMap((line) => {
    const [, path, ...sizes] = VOLUME_LINE.exec(`${line} `) ?? [];
    const [capacityGb = 0, allocatedGb = 0] = sizes.map((size) => {
      const [count, unit = ''] = size.split(' ');
      return Number(count) * (UNITS[unit] ?? Number.NaN);
    });
    return path === undefined ? [] : [{ path, capacityGb, allocatedGb }];
  });
}

/**
 * Disk promised by the pool besides the machines' root disks, which their claims include.
 */
function otherDiskGb(volumes: readonly Volume[], domains: readonly HostDomain[]): number {
  const rootDisks = new Set(
    domains.flatMap((domain) => (isMachine(domain) ? (domain.disks[0]?.path ?? []) : [])),
  );
  return volumes
    .filter(({ path }) => !rootDisks.has(path))
    .reduce((total, { capacityGb }) => total + capacityGb, 0);
}
