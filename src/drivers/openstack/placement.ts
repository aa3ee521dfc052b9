import type { FreeUnits, ObservedHost } from '../../orchestrator/model/inventory.ts';
import type { MachineSpec, Placing } from '../../orchestrator/model/platform-driver.ts';
import { datacentersOf } from '../kit/room.ts';
import type { Flavor, QuotaLeft, Zone } from './api.ts';
import type { Json } from './client.ts';
import { unlessWithheld } from './errors.ts';
import { readEverything } from './objects.ts';
import type { OpenStackOffer } from './options.ts';
import { type MachineMethod, offerOf, type Platform } from './platform.ts';
import { imageOf, isName } from './translate.ts';

const UNLIMITED = Number.MAX_SAFE_INTEGER;

export function findFlavor(all: readonly Flavor[], { flavor }: OpenStackOffer): Flavor | undefined {
  return all.find(({ id }) => id === flavor) ?? all.find(({ name }) => name === flavor);
}

/** The available zones where a machine may be, without those that an operator cordoned by either name. */
export function eligible(
  { options }: Platform,
  zones: readonly Zone[],
  { datacenter, avoidHosts = [] }: Pick<MachineSpec, 'datacenter' | 'avoidHosts'>,
  offer: OpenStackOffer,
): Zone[] {
  const among = [options.datacenters[datacenter]?.zones, offer.zones].filter((names) => names !== undefined);
  return zones.filter(
    ({ name, host, isAvailable }) =>
      isAvailable &&
      among.every((names) => names.includes(name)) &&
      !avoidHosts.includes(host) &&
      !avoidHosts.includes(name),
  );
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

/** How many machines the project's quota still allows, and the quota that limits it. */
function unitsOfQuota(
  left: QuotaLeft,
  { vcpus, ram }: Flavor,
  { boot_volume: boot }: OpenStackOffer,
  { storageGb, hasFloatingIp }: { storageGb: number; hasFloatingIp: boolean },
): { units: number; by: string } {
  const amounts = {
    instances: 1,
    cores: vcpus,
    RAM: ram,
    ports: 1,
    'floating IPs': hasFloatingIp ? 1 : 0,
    volumes: boot ? 1 : 0,
    'gigabytes of volumes': boot ? storageGb : 0,
  };
  const limits = Object.entries(amounts)
    .filter(([by, amount]) => amount > 0 && left[by] !== undefined)
    .map(([by, amount]) => ({ by, units: Math.floor((left[by] ?? 0) / amount) }));
  return limits.reduce((least, one) => (one.units < least.units ? one : least), { by: '', units: UNLIMITED });
}

/** What decides how many machines there is room for. */
async function survey(platform: Platform) {
  const { api } = platform;
  const [flavors, zones, left, hostsById, { refs }] = await Promise.all([
    api.flavors(),
    api.zones(),
    api.quotaLeft(),
    hypervisors(platform),
    readEverything(platform),
  ]);
  return { flavors, zones, left, hostsById, counted: [...refs.values()] };
}

/** The room for machines of an offer. Undefined if the cloud does not have its flavor. */
async function roomFor(
  platform: Platform,
  { flavors, left, hostsById }: Awaited<ReturnType<typeof survey>>,
  offer: OpenStackOffer,
  storageGb: number,
) {
  const flavor = findFlavor(flavors, offer);
  if (flavor === undefined) return undefined;
  const hasFloatingIp = platform.options.floating_network !== undefined;
  const quota = unitsOfQuota(left, flavor, offer, { storageGb, hasFloatingIp });
  const units = hostsById && (await unlessWithheld(unitsByProvider(platform, resourceGroups(flavor, offer))));
  /** By Placement, or by the quota where the cloud does not let this project ask it, or see the zone's hosts. */
  const inZone = ({ hosts }: Zone): number => {
    if (units === undefined || hosts === undefined) return quota.units;
    const here = [...units].filter(([id]) => hosts.includes(hostsById?.get(id) ?? ''));
    return here.reduce((sum, [, count]) => sum + count, 0);
  };
  return { quota, inZone };
}

const refused = (code: 'capacity' | 'image_missing' | 'invalid', detail: string): Placing => ({
  answer: 'refused',
  code,
  detail,
});

export const placeMachine: MachineMethod<'place'> = async (platform, spec, avoidHosts) => {
  if (!isName(spec.ref)) return refused('invalid', `${spec.ref} is not a valid tag of Nova`);
  const offer = offerOf(platform, spec.offerId);
  const { name } = imageOf(spec.image, offer, platform.options);
  const [image, found] = await Promise.all([platform.api.image(name), survey(platform)]);
  const room = await roomFor(platform, found, offer, spec.rootDiskGb);
  if (room === undefined) return refused('invalid', `the cloud has no flavor ${offer.flavor}`);
  if (image === undefined) return refused('image_missing', `the cloud has no active image ${name}`);
  const { quota, inZone } = room;
  if (quota.units < 1) return refused('capacity', `the project's quota of ${quota.by} is used up`);
  const hosts = eligible(platform, found.zones, { ...spec, avoidHosts }, offer)
    .map((zone) => ({
      host: zone.host,
      units: Math.min(inZone(zone), quota.units),
      counted: found.counted,
    }))
    .filter(({ units }) => units > 0);
  if (hosts.length === 0) return refused('capacity', 'no availability zone has room for it');
  return { answer: 'placed', hosts: hosts.toSorted((a, b) => b.units - a.units) };
};

export const readInventory: MachineMethod<'inventory'> = async (platform, avoidHosts = []) => {
  const found = await survey(platform);
  const free: FreeUnits[] = [];
  const limits = new Set<string>();
  for (const [offerId, sold] of platform.catalog.offers) {
    const offer = offerOf(platform, offerId);
    const room = await roomFor(platform, found, offer, sold.storageGb);
    const most = room?.quota.units ?? 0;
    for (const datacenter of datacentersOf(platform.catalog, sold)) {
      const zones = eligible(platform, found.zones, { datacenter, avoidHosts }, offer);
      const units = zones.reduce((sum, zone) => sum + (room?.inZone(zone) ?? 0), 0);
      if (room !== undefined && most < units) limits.add(`quota of ${room.quota.by}`);
      const counts = Math.min(units, most);
      // Nothing of the cloud limits it: the catalog does.
      if (counts < UNLIMITED) free.push({ offerId, datacenter, units: counts });
    }
  }
  const hosts = found.zones.map(
    ({ host, isAvailable }): ObservedHost => ({
      host,
      state: isAvailable ? 'open' : 'closed',
      ...(!isAvailable && { detail: 'no compute host of the zone is enabled and up' }),
    }),
  );
  return { answer: 'counted', free, counted: found.counted, limitedBy: [...limits], hosts };
};
