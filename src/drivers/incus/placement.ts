import type { Catalog, Offer } from '../../orchestrator/catalog/catalog.ts';
import type { FreeUnits, HostDevice, Inventory, ObservedHost } from '../../orchestrator/model/inventory.ts';
import type {
  MachineSpec,
  OwnerRef,
  Placing,
  Step,
  VolumeSpec,
} from '../../orchestrator/model/platform-driver.ts';
import { failed } from '../../platform-model/steps.ts';
import {
  CORDONED,
  datacentersOf,
  type Limit,
  listObstacles,
  shortageIn,
  unitsWithin,
  withObstacles,
} from '../kit/room.ts';
import type { Card, Instance, Resources, Volume } from './api.ts';
import { type Fleet, type Host, isJudgeable, NO_MEMBER, normalPci, offerOf } from './fleet.ts';
import { isProvedCopy, refsByName } from './identity.ts';
import { type IncusConfig, type IncusOffer, incusOfferSchema } from './options.ts';
import type { Platform } from './platform.ts';
import { bytesOf, cpusOf, isMarked, mark, refOf, rootOf } from './translate.ts';

export const NO_ROOM = 'no member has room for it';

export interface Wanted {
  vcpus: number;
  memoryGb: number;
  rootDiskGb: number;
  gpuCount: number;
}

/** Whether machines of the offer may be placed on the host for this datacenter. */
function isEligible(host: Host, offer: IncusOffer, group: string | undefined): boolean {
  const needed = [offer.host_group, group].filter((name) => name !== undefined);
  return host.isOnline && host.resources !== undefined && needed.every((name) => host.groups.includes(name));
}

export function roomOn(
  host: Host,
  fleet: Fleet,
  wanted: Wanted,
  offer: IncusOffer,
  options: IncusConfig,
): number {
  return host.resources === undefined ? 0 : unitsWithin(limitsOn(host, fleet, wanted, offer, options));
}

/** Empty if the host's resources are unknown. */
function limitsOn(
  host: Host,
  fleet: Fleet,
  wanted: Wanted,
  offer: IncusOffer,
  options: IncusConfig,
): Limit[] {
  const { resources } = host;
  if (resources === undefined) return [];
  const shares = sharesOf(host, resources, fleet, offer.storage_pool ?? options.storage_pool, options);
  const left = ({ total, taken }: Share): number => total - taken;
  const { vcpus, memoryGb, rootDiskGb, gpuCount } = wanted;
  return [
    { what: 'vCPUs', left: left(shares.cpus), needed: vcpus },
    { what: 'GB of memory', left: left(shares.memory) / 2 ** 30, needed: memoryGb },
    {
      what: `GB in the pool ${describePool(host, offer.storage_pool ?? options.storage_pool)}`,
      left: left(shares.disk) / 2 ** 30,
      needed: rootDiskGb,
    },
    { what: 'GPUs', left: gpuCount > 0 ? freeGpus(host, fleet, offer).length : 0, needed: gpuCount },
  ];
}

function describePool({ pools }: Host, name: string): string {
  const { problem, file } = pools.get(name) ?? {};
  if (problem !== undefined) return `${name}, which is ${problem}`;
  return file !== undefined && file.freeBytes < file.sparseBytes
    ? `${name}, whose file has only ${Math.floor(file.freeBytes / 2 ** 30)} GB left to grow`
    : name;
}

/** The hosts that have no room for a machine of the offer, and why. */
function obstaclesOn(
  hosts: readonly Host[],
  fleet: Fleet,
  wanted: Wanted,
  offer: IncusOffer,
  options: IncusConfig,
): { host: string; reason: string }[] {
  return hosts.flatMap((host) => {
    const reason = shortageIn(limitsOn(host, fleet, wanted, offer, options));
    return reason === undefined ? [] : { host: host.name, reason };
  });
}

/**
 * Why a stopped machine whose offer gave its unit back cannot start on its host. Undefined if it can, or if its offer holds
 * the unit.
 */
export async function lacksRoom(
  { fleet, catalog, options }: Platform,
  { config, expanded_config: limits, location }: Instance,
): Promise<Step<never> | undefined> {
  const offer = catalog.offers.get(config[mark.offer] ?? '');
  if (offer?.onStop !== 'release') return undefined;
  const now = await fleet.read();
  const host = now.hosts.find(({ name }) => name === location);
  if (host?.isOnline !== true) return failed('transient', `the room on ${location} cannot be read now`);
  const memoryGb = (bytesOf(limits['limits.memory']) ?? 0) / 2 ** 30;
  const wanted = { vcpus: cpusOf(limits['limits.cpu']), memoryGb, rootDiskGb: 0, gpuCount: 0 };
  const [obstacle] = obstaclesOn([host], now, wanted, offerOf(offer), options);
  return obstacle && failed('capacity', `${location}: ${obstacle.reason}`);
}

/** The fleet as it would be without Berth's machines and volumes. */
function withoutMachines(fleet: Fleet): Fleet {
  return {
    ...fleet,
    instances: fleet.instances.filter((one) => !isMarked(one)),
    volumes: fleet.volumes.filter((one) => !isMarked(one)),
  };
}

interface Share {
  total: number;
  taken: number;
}

/** A host's total resources with overcommit, and the used part; memory and disk in bytes. */
function sharesOf(
  host: Host,
  { cpu, memory }: Resources,
  fleet: Fleet,
  pool: string,
  { overcommit }: IncusConfig,
): Record<'cpus' | 'memory' | 'disk', Share> {
  const here = fleet.instances.filter(({ location }) => location === host.name);
  return {
    cpus: {
      total: cpu.total * overcommit.cpu,
      taken: sum(here, (one) => cpusOf(one.expanded_config['limits.cpu'])),
    },
    memory: {
      total: memory.total,
      taken: sum(here, (one) => bytesOf(one.expanded_config['limits.memory']) ?? 0),
    },
    disk: {
      total: (host.pools.get(pool)?.bytes ?? 0) * overcommit.disk,
      taken:
        sum(here, (one) => rootBytes(one, pool)) +
        sum(volumesOn(host, fleet, pool), ({ config }) => bytesOf(config['size']) ?? 0),
    },
  };
}

export function toHosts(
  { offers }: Catalog,
  fleet: Fleet,
  options: IncusConfig,
  avoidHosts: readonly string[] = [],
): ObservedHost[] {
  const sold = [...offers.values()].filter(({ gpuCount }) => gpuCount).map((offer) => offerOf(offer).gpus);
  return fleet.hosts.map((host): ObservedHost => {
    const { name, isOnline, resources } = host;
    if (!isOnline || resources === undefined)
      return { host: name, state: 'silent', detail: 'Incus reports it offline, or it does not answer' };
    const { cpus, memory, disk } = sharesOf(host, resources, fleet, options.storage_pool, options);
    const cards = resources.gpu.filter((card) => sold.some((wanted) => isWanted(card, wanted)));
    return {
      host: name,
      ...(avoidHosts.includes(name) ? { state: 'closed', detail: CORDONED } : { state: 'open' }),
      vcpus: cpus,
      memoryGb: inGb(memory),
      diskGb: inGb(disk),
      devices: cards.map((card) => toDevice(card, host, fleet)),
    };
  });
}

function inGb({ total, taken }: Share): Share {
  const gb = (bytes: number): number => Math.round((bytes / 2 ** 30) * 10) / 10;
  return { total: gb(total), taken: gb(taken) };
}

function toDevice(
  { pci_address: pci = '', vendor_id, product_id, product }: Card,
  { name }: Host,
  fleet: Fleet,
): HostDevice {
  const id = normalPci(pci);
  const has = ({ location, expanded_devices: all }: Instance): boolean =>
    location === name &&
    Object.values(all).some(
      ({ type, pci: own }) => type === 'gpu' && (own === undefined || normalPci(own) === id),
    );
  const holder = fleet.instances.find(has);
  const device = { id, type: product ?? `${vendor_id}:${product_id}` };
  return holder === undefined
    ? { ...device, state: 'free' }
    : {
        ...device,
        state: 'claimed',
        ref: isProvedCopy(holder) ? holder.name : refOf(holder),
        detail: 'an instance has it',
      };
}

function volumesOn({ name }: Host, { volumes }: Fleet, pool: string): Volume[] {
  return volumes.filter((volume) => volume.pool === pool && volume.location === name);
}

function rootBytes({ expanded_devices: devices }: Instance, pool: string): number {
  const root = rootOf(devices);
  return root?.['pool'] === pool ? (bytesOf(root['size']) ?? 0) : 0;
}

/** PCI addresses of the host's GPUs that the offer allows and no instance has, running or not. */
export function freeGpus(host: Host, { instances }: Fleet, { gpus }: IncusOffer): string[] {
  const here = instances.filter(({ location }) => location === host.name);
  const devices = here.flatMap(({ expanded_devices: all }) => Object.values(all));
  const taken = devices.filter(({ type }) => type === 'gpu');
  // A device without an address takes every matching GPU, so none is known to be free.
  if (taken.some(({ pci }) => pci === undefined)) return [];
  const addresses = new Set(taken.map(({ pci }) => normalPci(pci ?? '')));
  return (host.resources?.gpu ?? [])
    .filter((card) => isWanted(card, gpus))
    .map(({ pci_address: pci = '' }) => normalPci(pci))
    .filter((pci) => pci !== '' && !addresses.has(pci));
}

function isWanted(card: Card, { vendor_id: vendor, product_id: product, pci }: IncusOffer['gpus']): boolean {
  return (
    (vendor === undefined || card.vendor_id === vendor) &&
    (product === undefined || card.product_id === product) &&
    (pci === undefined || pci.map(normalPci).includes(normalPci(card.pci_address ?? '')))
  );
}

export interface Place {
  host: Host;
  /** How many machines or volumes fit there. */
  units: number;
}

export function placesFor(spec: MachineSpec, fleet: Fleet, offer: IncusOffer, options: IncusConfig): Place[] {
  return placesOf(spec, spec, fleet, offer, options);
}

/** The hosts for a volume, ordered as in {@link placesFor}. */
export function placesForVolume(
  spec: VolumeSpec & Pick<MachineSpec, 'avoidHosts'>,
  fleet: Fleet,
  options: IncusConfig,
): Place[] {
  const offer = incusOfferSchema.parse({ storage_pool: options.volume_pool });
  const wanted = { vcpus: 0, memoryGb: 0, rootDiskGb: spec.sizeGb, gpuCount: 0 };
  return placesOf(spec, wanted, fleet, offer, options);
}

function placesOf(
  { host: only, datacenter, avoidHosts }: Pick<MachineSpec, 'host' | 'datacenter' | 'avoidHosts'>,
  wanted: Wanted,
  fleet: Fleet,
  offer: IncusOffer,
  options: IncusConfig,
): Place[] {
  const group = options.datacenters[datacenter];
  return fleet.hosts
    .filter((host) => isEligible(host, offer, group) && !avoidHosts?.includes(host.name))
    .filter(({ name }) => only === undefined || name === only)
    .map((host) => ({ host, units: roomOn(host, fleet, wanted, offer, options) }))
    .filter(({ units }) => units > 0)
    .sort((a, b) => b.units - a.units || a.host.name.localeCompare(b.host.name));
}

/**
 * Converts places to the answer of `place`. `counted` lists resources that the counts already include. `only` is the
 * host that the resource is bound to.
 */
export function toPlacing(
  places: readonly Place[],
  { hosts }: Fleet,
  counted: readonly OwnerRef[],
  only: string | undefined,
): Placing {
  if (places.length > 0)
    return {
      answer: 'placed',
      hosts: places.map(({ host, units }) => ({ host: host.name, units, counted })),
    };
  if (only !== undefined && !hosts.some(({ name, isOnline }) => name === only && isOnline))
    return { answer: 'unknown', reason: `the member ${only} is offline` };
  return { answer: 'refused', code: 'capacity', detail: NO_ROOM };
}

/** Names of all instances that take up a unit, and refs of machines that have another name. */
export function countedRefs({ names, instances, released }: Fleet): OwnerRef[] {
  const all = new Set([...names, ...refsByName(instances).values()]);
  return [...all].filter((name) => !released.has(name));
}

/** How many machines of the offer fit into what the limits of the project leave. */
function unitsIn(room: Readonly<Record<string, number>>, offer: Offer | undefined): number {
  if (offer === undefined) return 0;
  const { vcpus, memoryGb, storageGb } = offer;
  const kind = offerOf(offer).kind === 'container' ? 'containers' : 'virtual-machines';
  const needed = {
    instances: 1,
    [kind]: 1,
    cpu: vcpus,
    memory: memoryGb * 2 ** 30,
    disk: storageGb * 2 ** 30,
  };
  return Math.min(
    ...Object.entries(needed).map(([name, each]) => Math.floor((room[name] ?? Infinity) / each)),
  );
}

export async function readInventory(
  { api, catalog, options, fleet }: Platform,
  avoidHosts?: readonly string[],
): Promise<Inventory> {
  const [now, room] = await Promise.all([fleet.read(), api.projectRoom()]);
  if (!isJudgeable(now)) return { answer: 'unknown', reason: NO_MEMBER };
  const free = countFree(catalog, now, options, avoidHosts).map((count) => {
    const units = unitsIn(room, catalog.offers.get(count.offerId));
    return units < count.units ? { ...count, units } : count;
  });
  const { project } = api.client;
  const limitedBy = Object.entries(room).map(([name, left]) => `limits.${name} of ${project} leaves ${left}`);
  return {
    answer: 'counted',
    free,
    ...(limitedBy.length > 0 && { limitedBy }),
    counted: countedRefs(now),
    hosts: toHosts(catalog, now, options, avoidHosts),
  };
}

/** Free units of each offer, counted as if it were the only one. */
export function countFree(
  catalog: Catalog,
  fleet: Fleet,
  options: IncusConfig,
  avoidHosts: readonly string[] = [],
): FreeUnits[] {
  const idle = withoutMachines(fleet);
  const open = fleet.hosts.filter(({ name }) => !avoidHosts.includes(name));
  // A member that is cordoned or does not answer, or whose pool is read-only, may have room for a machine later.
  const isComplete =
    avoidHosts.length === 0 &&
    fleet.hosts.every(
      ({ isOnline, resources, pools }) =>
        isOnline && resources !== undefined && [...pools.values()].every(({ problem }) => !problem),
    );
  return [...catalog.offers.values()].flatMap((offer) => {
    const machine = offerOf(offer);
    const wanted = { ...offer, rootDiskGb: offer.storageGb, gpuCount: offer.gpuCount ?? 0 };
    return [...datacentersOf(catalog, offer)].map((datacenter) => {
      const hosts = open.filter((host) => isEligible(host, machine, options.datacenters[datacenter]));
      const count = {
        offerId: offer.id,
        datacenter,
        units: sum(hosts, (host) => roomOn(host, fleet, wanted, machine, options)),
      };
      if (count.units > 0) return count;
      if (hosts.length === 0) return withObstacles(count, [`no open member is in ${datacenter}`], []);
      const obstacles = obstaclesOn(hosts, fleet, wanted, machine, options);
      const empty = obstaclesOn(hosts, idle, wanted, machine, options);
      const isMisfit = isComplete && empty.length === hosts.length;
      return withObstacles(count, listObstacles(obstacles), isMisfit ? listObstacles(empty) : []);
    });
  });
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
