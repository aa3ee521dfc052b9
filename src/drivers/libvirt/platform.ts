import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type {
  Call,
  CopyOfResource,
  DriverManifest,
  Inventory,
  Leftover,
  Listing,
  ObservedMachine,
  OwnerRef,
  PlatformDriver,
  Presence,
  Step,
} from '../../orchestrator/model/platform-driver.ts';
import type { DriverSetting } from '../kit/driver-definition.ts';
import { Change } from './change.ts';
import { createMachine } from './create.ts';
import { mend } from './definition.ts';
import { destroyMachine } from './destroy.ts';
import { disownMachine } from './disown.ts';
import { isMachine } from './domain-xml.ts';
import { tellsNothing, toFailure, VirshError } from './errors.ts';
import type { Platform } from './fleet.ts';
import { type Fleet, hostsOf, inTime, type Member, openFleet, rankOf } from './fleet.ts';
import { sweepHost } from './gpus/machine-gpus.ts';
import { type HostDomain, listDomains, readHostView } from './hosts/host-view.ts';
import { countUnits, type HostAnswer } from './hosts/inventory.ts';
import { copiesIn, findLeftovers, proveGone } from './leftovers.ts';
import { type LibvirtConfig, libvirtOfferSchema } from './options.ts';
import { placeOnHosts } from './placement.ts';
import { filesOf, listFiles, listKnownFiles, readEnd } from './pool.ts';
import { restartMachine, startMachine, stopMachine } from './power.ts';
import { neighboursOf, toObserved } from './translate.ts';
import { faultOf, readPause, readSurroundings } from './trouble.ts';
import { createVolumes } from './volumes.ts';

const CONSOLE_BYTES = 16 * 1024;
/** The limit that the NoCloud disk is designed for; cloud-init itself accepts more. */
const CLOUD_INIT_BYTES = 1024 * 1024;

export function openLibvirt(
  config: LibvirtConfig,
  { catalog, clock, log, asking }: Pick<DriverSetting, 'catalog' | 'clock' | 'log' | 'asking'>,
): PlatformDriver {
  return driverOf({ fleet: openFleet(config, log, asking), config, catalog, clock, log });
}

export const manifest: DriverManifest = {
  name: 'libvirt',
  stop: true,
  resume: true,
  restart: true,
  attachVolume: 'hot',
  resizeVolume: 'attached',
  createVisibleWithinMs: 0,
  keepsNotes: true,
  fences: true,
  cloudInitBytes: CLOUD_INIT_BYTES,
};

/** Makes the driver for a fleet. */
export function driverOf(platform: Platform): PlatformDriver {
  const { fleet } = platform;
  const alone = <T>(
    ref: OwnerRef,
    call: Call | undefined,
    cookie: string | null,
    task: (change: Change) => Promise<Step<T>>,
  ): Promise<Step<T>> => {
    const change = new Change(platform.clock, `${ref}.machine`, call);
    return fleet.alone(ref, () =>
      task(change).catch((error) => toFailure(error, change.hasChanged || cookie !== null)),
    );
  };
  return {
    manifest,
    get: (ref) => readPresence(fleet, ref),
    list: () => listAll(platform),
    place: (spec, avoidHosts) => placeOnHosts(platform, spec, avoidHosts),
    create: (spec, cookie, call) =>
      alone(spec.ref, call, cookie, (change) => createMachine(platform, change, spec, cookie)),
    stop: (ref, cookie, call) =>
      alone(ref, call, cookie, (change) => stopMachine(platform, change, ref, cookie)),
    start: (ref, cookie, call) => alone(ref, call, cookie, (change) => startMachine(platform, change, ref)),
    restart: (ref, id, cookie, call) =>
      alone(ref, call, cookie, (change) => restartMachine(platform, change, ref, id)),
    destroy: (ref, cookie, order, call) =>
      alone(ref, call, cookie, (change) => destroyMachine(platform, change, ref, order)),
    disown: (ref, cookie, call) => alone(ref, call, cookie, (change) => disownMachine(platform, change, ref)),
    volumes: createVolumes(platform),
    inventory: (avoidHosts) => readInventory(platform, avoidHosts),
    async consoleTail(ref) {
      const search = await fleet.find(ref);
      if (search.answer !== 'found') return undefined;
      return readEnd(search.machine.host, filesOf(ref).console, CONSOLE_BYTES);
    },
    async close() {
      await Promise.all(fleet.hosts.map((host) => host.close()));
    },
  };
}

/** `gone` only if no host has the domain, and no host that answers has its disk or seed. */
async function readPresence(fleet: Fleet, ref: OwnerRef): Promise<Presence<ObservedMachine>> {
  const search = await fleet.find(ref);
  if (search.answer === 'found')
    return { answer: 'observed', value: await toObserved(await mend(search.machine)) };
  if (search.hosts === undefined) return search;
  try {
    const { hosts, left, reason: untold } = await proveGone(fleet.hosts, ref, search.hosts);
    if (left !== undefined) return { answer: 'unknown', reason: left };
    const reason = search.answer === 'unknown' ? search.reason : untold;
    return reason === undefined ? { answer: 'gone', hosts } : { answer: 'unknown', reason, hosts };
  } catch (error) {
    if (error instanceof VirshError) return { answer: 'unknown', reason: error.message };
    throw error;
  }
}

/** One host's listing. `rank` decides if several hosts have the same machine. */
interface HostListing {
  items: readonly { rank: number; machine: ObservedMachine }[];
  copies: readonly CopyOfResource[];
  leftovers: readonly Leftover[];
}

/** Names the hosts that answered, so that other hosts' machines are not taken for lost. Unknown if no host answers. */
async function listAll(platform: Platform): Promise<Listing<ObservedMachine>> {
  const { hosts } = platform.fleet;
  const silent = new Map<string, string>();
  const listOne = (host: Member): Promise<HostListing[]> =>
    inTime(hosts, host, listHost(platform, host)).then(
      (listing) => [listing],
      (error) => {
        if (!(error instanceof VirshError && tellsNothing(error))) throw error;
        silent.set(host.name, error.message);
        return [];
      },
    );
  try {
    const listings = (await Promise.all(hosts.map(listOne))).flat();
    if (silent.size === hosts.length) return { answer: 'unknown', reason: [...silent.values()].join('; ') };
    const all = listings.flatMap(({ items }) => items).toSorted((a, b) => b.rank - a.rank);
    const items = new Map<OwnerRef, ObservedMachine>();
    for (const { machine } of all) if (!items.has(machine.ref)) items.set(machine.ref, machine);
    return {
      answer: 'listed',
      items: [...items.values()],
      copies: listings.flatMap(({ copies }) => copies),
      // Hosts may share a folder.
      leftovers: listings.flatMap(({ leftovers }) => leftovers).filter(({ ref }) => !items.has(ref)),
      hosts: hostsOf(hosts, silent),
    };
  } catch (error) {
    if (error instanceof VirshError) return { answer: 'unknown', reason: error.message };
    throw error;
  }
}

async function listHost(platform: Platform, host: Member): Promise<HostListing> {
  const files = await listKnownFiles(host).catch(unlessNoPool);
  const domains = await listDomains(host);
  const ours = domains.flatMap(({ mark, ...domain }) =>
    mark === undefined || !isMachine({ ...domain, mark }) ? [] : [{ ...domain, mark }],
  );
  const neighbours = neighboursOf(host);
  const surroundings = ours.length === 0 ? undefined : await readSurroundings(host, ours);
  const items = ours.map(async (domain) => {
    const { running, isPaused, uuid, mark } = domain;
    const pause = isPaused ? await readPause(host, uuid) : undefined;
    // Its files are still being made.
    const isMade = running || (mark.memo !== 'create' && mark.memo !== 'boot');
    const fault = isMade ? faultOf({ ref: mark.ref, running, pause, domain }, surroundings) : undefined;
    const machine = await toObserved({ host, running, pause, fault, neighbours, domain });
    return { rank: rankOf({ running, pause, domain }), machine };
  });
  return {
    items: await Promise.all(items),
    copies: copiesIn(domains, host.name),
    leftovers: await readLeftovers(platform, host, files, domains),
  };
}

/** Reads the apparent leftovers a second time, since a delete may have been under way. */
async function readLeftovers(
  { config, catalog }: Platform,
  host: Member,
  files: readonly string[],
  domains: readonly HostDomain[],
): Promise<Leftover[]> {
  const found = findLeftovers(files, domains, imageVolumes(config, catalog));
  if (found.size === 0) return [];
  const still = await listFiles(host).catch(unlessNoPool);
  return [...found].flatMap(([ref, names]) => {
    const left = names.filter((name) => still.includes(name));
    return left.length === 0 ? [] : [{ ref, host: host.name, detail: left.join(', ') }];
  });
}

function imageVolumes({ images }: LibvirtConfig, { offers }: Catalog): ReadonlySet<string> {
  const all = [...offers.values()].flatMap(({ machine }) =>
    Object.values(libvirtOfferSchema.parse(machine).images),
  );
  return new Set([...Object.values(images), ...all].map(({ volume }) => volume));
}

function unlessNoPool(error: unknown): string[] {
  if (error instanceof VirshError && error.problem === 'no_pool') return [];
  throw error;
}

/** Counts the room on all hosts. Resets dirty GPUs first, in case an earlier reset was missed. */
async function readInventory(
  { fleet, config, catalog, log }: Platform,
  avoidHosts: readonly string[] | undefined,
): Promise<Inventory> {
  const answers = await Promise.all(
    fleet.hosts.map(async (host): Promise<HostAnswer> => {
      try {
        const reading = sweepHost(host, config.gpu_types, log).then(() =>
          readHostView(host, host.shell, config.gpu_types),
        );
        return { host: host.name, view: await inTime(fleet.hosts, host, reading) };
      } catch (error) {
        if (error instanceof VirshError) return { host: host.name, unknown: error.message };
        throw error;
      }
    }),
  );
  return countUnits(catalog, answers, avoidHosts, config);
}
