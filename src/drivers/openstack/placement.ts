import type { FreeUnits, ObservedHost } from '../../orchestrator/model/inventory.ts';
import type { Placement } from '../../orchestrator/model/platform-driver.ts';
import type { Flavor, QuotaLeft, Zone } from './api.ts';
import type { Json } from './client.ts';
import { unlessWithheld } from './errors.ts';
import { readEverything } from './objects.ts';
import type { OpenStackOffer } from './options.ts';
import { type MachineMethod, offerOf, type Platform } from './platform.ts';
import { imageOf, isName, toHost } from './translate.ts';

const UNLIMITED = Number.MAX_SAFE_INTEGER;

export async function flavorOf({ api }: Platform, offer: OpenStackOffer): Promise<Flavor | undefined> {
  return findFlavor(await api.flavors(), offer);
}

export function findFlavor(all: readonly Flavor[], { flavor }: OpenStackOffer): Flavor | undefined {
  return all.find(({ id }) => id === flavor) ?? all.find(({ name }) => name === flavor);
}

interface Wanted {
  datacenter: string;
  avoidHosts?: readonly string[];
}

/** The available zones where the machine may be, without cordoned ones. */
export async function zonesFor(platform: Platform, wanted: Wanted, offer: OpenStackOffer): Promise<string[]> {
  const [zones, session] = await Promise.all([platform.api.zones(), platform.api.client.session()]);
  return eligible(platform, zones, wanted, offer, (zone) => toHost(zone, session)).map(({ name }) => name);
}

function eligible(
  { options }: Platform,
  zones: readonly Zone[],
  { datacenter, avoidHosts = [] }: Wanted,
  offer: OpenStackOffer,
  hostOf: (zone: string) => string,
): Zone[] {
  // An operator may cordon a zone by its name alone.
  const avoided = new Set(avoidHosts);
  const among = [options.datacenters[datacenter]?.zones, offer.zones].filter((names) => names !== undefined);
  return zones.filter(
    ({ name, isAvailable }) =>
      isAvailable &&
      among.every((names) => names.includes(name)) &&
      !avoided.has(hostOf(name)) &&
      !avoided.has(name),
  );
}

/** How many machines of a flavor fit into each zone, or undefined if Placement does not tell this project. */
type Room = (flavor: Flavor, offer: OpenStackOffer, zone: Zone) => Promise<number | undefined>;

/** The room in zones, by Placement: what its providers have left, with the traits that the flavor asks for. */
async function roomOf(platform: Platform): Promise<Room> {
  const hostsById = await hypervisors(platform);
  const asked = new Map<string, Promise<Map<string, number> | undefined>>();
  return async (flavor, offer, { hosts }) => {
    if (hostsById === undefined || hosts === undefined) return undefined;
    const groups = resourceGroups(flavor, offer);
    const key = JSON.stringify([...groups]);
    const asking = asked.get(key) ?? unlessWithheld(unitsByProvider(platform, groups));
    asked.set(key, asking);
    const units = await asking;
    return (
      units &&
      [...units].reduce(
        (sum, [id, count]) => (hosts.includes(hostsById.get(id) ?? '') ? sum + count : sum),
        0,
      )
    );
  };
}

/** Compute hosts by the ids of their resource providers. Undefined if this project may not see them. */
async function hypervisors({ api }: Platform): Promise<Map<string, string> | undefined> {
  const path = '/os-hypervisors/detail';
  const listing = api.client.list<{ id: string; service: Json }>('compute', path, 'hypervisors');
  const all = await unlessWithheld(listing);
  return all && new Map(all.map(({ id, service }) => [id, String(service['host'])]));
}

/** What one provider must have, all of it, and its traits; `!` before one that it must not have. */
interface ResourceGroup {
  resources: Record<string, number>;
  required: string[];
}

/** What Nova asks Placement for a flavor: by the number of its group, '' for what has none. */
export function resourceGroups(
  { vcpus, ram, disk, swap, extra_specs: specs = {}, ...flavor }: Flavor,
  offer: OpenStackOffer,
): ReadonlyMap<string, ResourceGroup> {
  const root = offer.boot_volume ? 0 : disk;
  const local = root + (flavor['OS-FLV-EXT-DATA:ephemeral'] ?? 0) + Math.ceil((swap || 0) / 1024);
  const cpus = specs['hw:cpu_policy'] === 'dedicated' ? 'PCPU' : 'VCPU';
  const resources: Record<string, number> = { [cpus]: vcpus, MEMORY_MB: ram, DISK_GB: local };
  const groups = new Map([['', { resources, required: ['!COMPUTE_STATUS_DISABLED'] }]]);
  for (const [key, value] of Object.entries(specs)) {
    const [, kind, number = '', name = ''] = /^(resources|trait)(\d*):(.+)$/.exec(key) ?? [];
    if (kind === undefined) continue;
    const group = groups.get(number) ?? { resources: {}, required: [] };
    groups.set(number, group);
    if (kind === 'resources') group.resources[name] = Number(value);
    else group.required.push(value === 'forbidden' ? `!${name}` : name);
  }
  return groups;
}

async function unitsByProvider(
  { api }: Platform,
  groups: ReadonlyMap<string, ResourceGroup>,
): Promise<Map<string, number>> {
  const query: Record<string, string> = groups.size > 1 ? { group_policy: 'none' } : {};
  const wanted: Record<string, number> = {};
  for (const [number, { resources, required }] of groups) {
    const amounts = Object.entries(resources).filter(([, amount]) => amount > 0);
    for (const [name, amount] of amounts) wanted[name] = (wanted[name] ?? 0) + amount;
    query[`resources${number}`] = amounts.map(([name, amount]) => `${name}:${amount}`).join(',');
    if (required.length > 0) query[`required${number}`] = required.join(',');
  }
  const body = await api.client.get('placement', '/allocation_candidates', query);
  const summaries = Object.values(body['provider_summaries'] as Record<string, Summary>);
  const trees = Map.groupBy(summaries, ({ root_provider_uuid: root }) => root);
  return new Map([...trees].map(([root, tree]) => [root, unitsIn(tree, wanted)]));
}

interface Summary {
  root_provider_uuid: string;
  resources: Readonly<Record<string, { capacity: number; used: number }>>;
}

function unitsIn(tree: readonly Summary[], wanted: Readonly<Record<string, number>>): number {
  const units = Object.entries(wanted).map(([name, amount]) => {
    const left = tree.reduce(
      (sum, one) => sum + (one.resources[name]?.capacity ?? 0) - (one.resources[name]?.used ?? 0),
      0,
    );
    return Math.floor(left / amount);
  });
  return Math.max(0, Math.min(...units));
}

/** How many machines the project's quota still allows, and the quota that says so. */
function unitsOfQuota(
  left: QuotaLeft,
  flavor: Flavor,
  offer: OpenStackOffer,
  { storageGb, hasFloatingIp }: { storageGb: number; hasFloatingIp: boolean },
): { units: number; by: string } {
  const of = (quota: number | undefined, amount: number) =>
    quota === undefined || amount === 0 ? UNLIMITED : Math.floor(quota / amount);
  const limits: [string, number][] = [
    ['instances', of(left.instances, 1)],
    ['cores', of(left.cores, flavor.vcpus)],
    ['RAM', of(left.ramMib, flavor.ram)],
    ['ports', of(left.ports, 1)],
    ['floating IPs', hasFloatingIp ? of(left.floatingIps, 1) : UNLIMITED],
    ['volumes', offer.boot_volume ? of(left.volumes, 1) : UNLIMITED],
    ['gigabytes of volumes', offer.boot_volume ? of(left.gigabytes, storageGb) : UNLIMITED],
  ];
  const [by, units] = limits.reduce((least, one) => (one[1] < least[1] ? one : least));
  return { units, by };
}

/** What decides how many machines there is room for. */
async function survey(platform: Platform) {
  const { api } = platform;
  const [flavors, zones, session, left, room, { refs }] = await Promise.all([
    api.flavors(),
    api.zones(),
    api.client.session(),
    api.quotaLeft(),
    roomOf(platform),
    readEverything(platform),
  ]);
  const hostOf = (zone: string): string => toHost(zone, session);
  return { flavors, zones, hostOf, left, room, counted: [...refs.values()] };
}

export const placeMachine: MachineMethod<'place'> = async (platform, spec, avoidHosts) => {
  if (!isName(spec.ref))
    return { answer: 'refused', code: 'invalid', detail: `${spec.ref} is not a valid tag of Nova` };
  const { api, options } = platform;
  const offer = offerOf(platform, spec.offerId);
  const { name } = imageOf(spec.image, offer, options);
  const [image, found] = await Promise.all([api.image(name), survey(platform)]);
  const { zones, hostOf, left, room, counted } = found;
  const flavor = findFlavor(found.flavors, offer);
  if (flavor === undefined)
    return { answer: 'refused', code: 'invalid', detail: `the cloud has no flavor ${offer.flavor}` };
  if (image === undefined)
    return { answer: 'refused', code: 'image_missing', detail: `the cloud has no active image ${name}` };
  const hasFloatingIp = options.floating_network !== undefined;
  const quota = unitsOfQuota(left, flavor, offer, { storageGb: spec.rootDiskGb, hasFloatingIp });
  if (quota.units < 1)
    return { answer: 'refused', code: 'capacity', detail: `the project's quota of ${quota.by} is used up` };
  const hosts: Placement[] = [];
  for (const zone of eligible(platform, zones, { ...spec, avoidHosts }, offer, hostOf)) {
    const units = Math.min((await room(flavor, offer, zone)) ?? UNLIMITED, quota.units);
    if (units > 0) hosts.push({ host: hostOf(zone.name), units, counted });
  }
  if (hosts.length === 0)
    return { answer: 'refused', code: 'capacity', detail: 'no availability zone has room for it' };
  return { answer: 'placed', hosts: hosts.toSorted((a, b) => b.units - a.units) };
};

export const readInventory: MachineMethod<'inventory'> = async (platform, avoidHosts = []) => {
  const { catalog, options } = platform;
  const { flavors, zones, hostOf, left, room, counted } = await survey(platform);
  const free: FreeUnits[] = [];
  const limits = new Set<string>();
  const hasFloatingIp = options.floating_network !== undefined;
  for (const [offerId, { placements, storageGb }] of catalog.offers) {
    const offer = offerOf(platform, offerId);
    const flavor = findFlavor(flavors, offer);
    const quota = flavor && unitsOfQuota(left, flavor, offer, { storageGb, hasFloatingIp });
    for (const datacenter of new Set(
      placements.map(({ region }) => catalog.regions.get(region)?.datacenter ?? region),
    )) {
      let units = 0;
      for (const zone of flavor === undefined
        ? []
        : eligible(platform, zones, { datacenter, avoidHosts }, offer, hostOf))
        units += (await room(flavor as Flavor, offer, zone)) ?? quota?.units ?? 0;
      if (quota !== undefined && quota.units < units) limits.add(`quota of ${quota.by}`);
      const counts = Math.min(units, quota?.units ?? 0);
      // Nothing of the cloud limits it: the catalog does.
      if (counts < UNLIMITED) free.push({ offerId, datacenter, units: counts });
    }
  }
  const hosts = zones.map(
    ({ name, isAvailable }): ObservedHost => ({
      host: hostOf(name),
      state: isAvailable ? 'open' : 'closed',
      ...(!isAvailable && { detail: 'no compute host of the zone is enabled and up' }),
    }),
  );
  return { answer: 'counted', free, counted, limitedBy: [...limits], hosts };
};
