import { basename } from 'node:path';
import type { Host } from '../client.ts';
import { type HostDomain, isMachine } from '../domain-xml.ts';
import { isHostFailure, onProblem, VirshError } from '../errors.ts';
import { type GpuTypes, listGpus } from '../gpus/gpus.ts';
import { scanGpus } from '../gpus/pci-functions.ts';
import { hasNetworkFilter, NETWORK_FILTER, natUnits, takenPorts } from '../network.ts';
import type { HostOptions } from '../options.ts';
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
import type { Claim, HostView, Size } from './room.ts';

interface Hardware extends Size {
  /** Free space of the pool's disk. */
  freeDiskGb: number;
  /** Why libvirt cannot start new machines. Undefined if it can. */
  fault: string | undefined;
  capabilities: Capabilities;
}

const GIB = 1024 ** 3;

/** Reads a host's resources and the claims of its domains. @throws {VirshError} if the host does not answer */
export async function readHostView(host: Host, shell: HostShell, gpuTypes: GpuTypes): Promise<HostView> {
  const { options } = host;
  const place = { stateDir: options.state_dir };
  const sellsGpus = Object.keys(gpuTypes).length > 0;
  const [facts, hardware, domains, volumes, scan] = await Promise.all([
    readHostFacts(shell, place),
    readHardware(host),
    observeDomains(host, shell),
    listVolumes(host).catch(onProblem('no_pool', [])),
    sellsGpus ? scanGpus(shell, place) : undefined,
  ]);
  const claims = domains.map(toClaim);
  const claimed = new Set(claims.flatMap(({ pciFunctions }) => pciFunctions));
  return {
    name: host.name,
    datacenter: options.datacenter,
    group: options.group,
    cordon: cordonOf(options, facts, hardware),
    fault: hardware.fault ?? unpreparedFor(options, facts) ?? (await missingBridge(options, shell)),
    volumes: new Set(volumes.map(({ path }) => basename(path))),
    capabilities: hardware.capabilities,
    sellable: sellableOf(hardware, options),
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

function cordonOf(
  { cordoned, reserve }: HostOptions,
  { cordon }: HostFacts,
  { freeDiskGb }: Hardware,
): string | undefined {
  if (cordoned) return 'in the configuration';
  if (cordon !== undefined) return cordon;
  if (freeDiskGb >= reserve.disk_gb) return undefined;
  return `its pool has ${freeDiskGb.toFixed(1)} GB free, less than reserve.disk_gb, ${reserve.disk_gb}`;
}

function sellableOf(hardware: Hardware, { reserve, overcommit }: HostOptions): Size {
  return {
    vcpus: Math.floor(hardware.vcpus * overcommit.vcpus) - reserve.vcpus,
    memoryMb: Math.floor(hardware.memoryMb * overcommit.memory - reserve.memory_gb * 1024),
    diskGb: Math.floor(hardware.diskGb * overcommit.disk - reserve.disk_gb),
  };
}

async function readHardware(host: Host): Promise<Hardware> {
  const { pool, network } = host.options;
  const net = network.mode === 'nat' ? `net-info ${network.network}; ` : '';
  // The last command, which never fails, decides the result.
  const text = await host.virsh([
    `${DOMCAPABILITIES}; pool-info --bytes ${pool}; ${net}nwfilter-list; nodeinfo`,
  ]);
  const isPoolUp = /^State:\s+running/m.test(text);
  const isNetUp = network.mode !== 'nat' || /^Active:\s+yes/m.test(text);
  const faults = [
    ...(isPoolUp ? [] : [`its pool ${pool} is not active`]),
    ...(isNetUp ? [] : ['its network is not active']),
    ...(hasNetworkFilter(text) ? [] : [`it has no network filter ${NETWORK_FILTER}`]),
  ];
  const value = (name: string): number => {
    const [, number] = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text) ?? [];
    if (number === undefined)
      throw new VirshError('other', `${host.name}: libvirt does not report its ${name}`);
    return Number(number);
  };
  return {
    vcpus: value('CPU\\(s\\)'),
    memoryMb: Math.floor(value('Memory size') / 1024),
    diskGb: isPoolUp ? value('Capacity') / GIB : 0,
    // The fault already closes the host.
    freeDiskGb: isPoolUp ? value('Available') / GIB : Number.POSITIVE_INFINITY,
    fault: faults[0],
    capabilities: readCapabilities(text),
  };
}

/** Why the host cannot refuse commands that come too late. Undefined if it can. */
function unpreparedFor({ state_dir: stateDir }: HostOptions, { missing, canWriteState }: HostFacts) {
  if (missing !== undefined) return `it has no ${missing}`;
  return canWriteState ? undefined : `its state folder ${stateDir} cannot be written`;
}

/** Reports a missing bridge. Undefined if the configured bridge exists. */
async function missingBridge({ network, state_dir: stateDir }: HostOptions, shell: HostShell) {
  if (network.mode !== 'bridged') return undefined;
  const path = `/sys/class/net/${network.bridge}`;
  const { lines } = await runHostScript(shell, { stateDir }, ['exists', path]);
  return lines.length > 0 ? undefined : `it has no bridge ${network.bridge}`;
}

function unlessHostFailure(error: unknown): void {
  if (!(error instanceof VirshError) || isHostFailure(error)) throw error;
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
}

const UNITS: Readonly<Record<string, number>> = {
  B: 1 / GIB,
  KiB: 1 / 1024 ** 2,
  MiB: 1 / 1024,
  GiB: 1,
  TiB: 1024,
};

async function listVolumes(host: Host): Promise<Volume[]> {
  // Libvirt lists volumes deleted outside of it until a refresh, which it refuses while a file is being written.
  await host.virsh(['pool-refresh', host.options.pool]).catch(unlessHostFailure);
  const text = await host.virsh(['vol-list', '--details', '--pool', host.options.pool]);
  return text.split('\n').flatMap((line) => {
    const [, path, size, unit = ''] = /\s(\/.*?)\s{2,}\S+\s+([\d.]+) ([KMGT]?i?B)\s/.exec(`${line} `) ?? [];
    return path === undefined ? [] : [{ path, capacityGb: Number(size) * (UNITS[unit] ?? Number.NaN) }];
  });
}

/**
 * Disk promised by the pool besides the machines' root disks, which their claims include. The content of an imported
 * image is left out: the volume on top of it has the same size.
 */
function otherDiskGb(volumes: readonly Volume[], domains: readonly HostDomain[]): number {
  const rootDisks = new Set(
    domains.flatMap((domain) => (isMachine(domain) ? (domain.disks[0]?.path ?? []) : [])),
  );
  return volumes
    .filter(({ path }) => !rootDisks.has(path) && !/\.[0-9a-f]{64}$/.test(path))
    .reduce((total, { capacityGb }) => total + capacityGb, 0);
}
