import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type {
  CopyOfResource,
  Leftover,
  Listing,
  ObservedMachine,
  OwnerRef,
  Presence,
} from '../../orchestrator/model/platform-driver.ts';
import { mend } from './definition.ts';
import { type HostDomain, isMachine } from './domain-xml.ts';
import { isHostFailure, onProblem, VirshError } from './errors.ts';
import { hostsOf, inTime, type Member, rankOf } from './fleet.ts';
import { observeDomains } from './hosts/domains.ts';
import { copiesIn, findLeftovers, proveGone } from './leftovers.ts';
import { type LibvirtConfig, libvirtOfferSchema } from './options.ts';
import type { Platform } from './platform.ts';
import { listFiles, listKnownFiles } from './pool.ts';
import { neighboursOf, toObserved } from './translate.ts';
import { faultOf, readPause, readSurroundings, silenceFault } from './trouble.ts';

/**
 * Reads a machine. The answer is `gone` only if no host has the domain, and no host that answers has its disk or seed.
 */
export async function getMachine({ fleet }: Platform, ref: OwnerRef): Promise<Presence<ObservedMachine>> {
  const search = await fleet.find(ref);
  if (search.answer === 'found')
    return { answer: 'observed', value: await toObserved(await mend(search.machine)) };
  if (search.hosts === undefined) return search;
  const { hosts, left, reason: unread } = await proveGone(fleet.hosts, ref, search.hosts);
  if (left !== undefined) return { answer: 'unknown', reason: left };
  const reason = search.answer === 'unknown' ? search.reason : unread;
  return reason === undefined ? { answer: 'gone', hosts } : { answer: 'unknown', reason, hosts };
}

interface HostListing {
  items: readonly { rank: number; machine: ObservedMachine }[];
  copies: readonly CopyOfResource[];
  leftovers: readonly Leftover[];
}

/**
 * Lists the machines, and names the hosts that answered, so that other hosts' machines are not taken for lost. The
 * answer is unknown if no host answers.
 */
export async function listMachines(platform: Platform): Promise<Listing<ObservedMachine>> {
  const { clock, fleet } = platform;
  const { hosts } = fleet;
  const silent = new Map<string, string>();
  const listOne = (host: Member): Promise<HostListing[]> =>
    inTime(clock, hosts, host, listHost(platform, host)).then(
      (listing) => [listing],
      (error) => {
        if (!(error instanceof VirshError && (isHostFailure(error) || error.problem === 'late'))) throw error;
        silent.set(host.name, error.message);
        return [];
      },
    );
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
}

async function listHost(platform: Platform, host: Member): Promise<HostListing> {
  const files = await listKnownFiles(host).catch(onProblem<string[]>('no_pool', []));
  const domains = await observeDomains(host, host.shell, 'known');
  const ours = domains.flatMap(({ mark, ...domain }) =>
    mark === undefined || !isMachine({ ...domain, mark }) ? [] : [{ ...domain, mark }],
  );
  const neighbours = neighboursOf(host);
  const surroundings = ours.length === 0 ? undefined : await readSurroundings(host, ours);
  const items = ours.map(async (domain) => {
    const { running, isPaused, isSilent = false, uuid, mark } = domain;
    const read =
      isPaused && !isSilent
        ? await readPause(host, uuid).catch(onProblem<'late'>('late', 'late'))
        : undefined;
    const isLastKnown = isSilent || read === 'late';
    const pause = read === 'late' ? undefined : read;
    // Its files are still being made.
    const isMade = running || (mark.memo !== 'create' && mark.memo !== 'boot');
    const found = isMade ? faultOf({ ref: mark.ref, running, pause, domain }, surroundings) : undefined;
    const fault = isLastKnown ? silenceFault(host.name, domain) : found;
    const machine = await toObserved({ host, running, pause, fault, isLastKnown, neighbours, domain });
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
  const still = await listFiles(host).catch(onProblem<string[]>('no_pool', []));
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
