import { DEFAULT_CALL_MS } from '../../../work/lease-time.ts';
import type { Host } from '../client.ts';
import { type DefinedDomain, type HostDomain, readDomainElement } from '../domain-xml.ts';
import { hasProblem, onProblem, VirshError } from '../errors.ts';
import { childrenOf, parseXml } from '../xml.ts';
import { runHostScript } from './host-facts.ts';
import type { HostShell } from './host-shell.ts';

/** Number of UUIDs per command line. */
const DUMPED_AT_ONCE = 500;
/** How long libvirt may take for each domain that it dumps. */
const DUMP_MS = 5;
/** How long libvirt may take for its list. Together with the next limit it is below that of one host among several. */
const LIST_WITHIN_MS = DEFAULT_CALL_MS / 3;
/** How long libvirt may take to answer about one domain. */
export const DOMAIN_WITHIN_MS = DEFAULT_CALL_MS / 5;

/** @throws {VirshError} `late` while libvirt waits for a domain: it locks each domain of its list */
export async function listUuids({ virsh }: Pick<Host, 'virsh'>, ...state: string[]): Promise<string[]> {
  const text = await virsh(['list', '--uuid', ...state], { withinMs: LIST_WITHIN_MS });
  return text.split(/\s+/).filter(Boolean);
}

/**
 * All domains of the host, Berth's or not, as running or as stored. A domain that ends during the read is omitted. If
 * a domain is missing from the output but still exists, the read fails: its machine would seem gone and its GPUs
 * free.
 *
 * @throws {VirshError}
 */
export async function listDomains(host: Host, as: 'live' | 'stored' = 'live'): Promise<HostDomain[]> {
  const uuids = (...state: string[]): Promise<string[]> => listUuids(host, ...state);
  const [all, running] = await Promise.all([uuids('--all'), uuids()]);
  // Includes domains whose guest is suspended or has crashed; the reason is read for each.
  const paused = running.length === 0 ? [] : await uuids('--state-paused', '--state-other');
  const domains: DefinedDomain[] = [];
  for (let from = 0; from < all.length; from += DUMPED_AT_ONCE)
    domains.push(...(await dumpDomains(host, all.slice(from, from + DUMPED_AT_ONCE), as)));
  const dumped = new Set(domains.map(({ uuid }) => uuid));
  const missing = all.filter((uuid) => !dumped.has(uuid));
  const still = missing.length === 0 ? [] : await uuids('--all');
  const unlisted = missing.find((uuid) => still.includes(uuid));
  if (unlisted !== undefined)
    throw new VirshError('busy', `${host.name} did not list the domain ${unlisted}`);
  const listed = domains.map((domain) => ({
    ...domain,
    running: running.includes(domain.uuid),
    isPaused: paused.includes(domain.uuid),
  }));
  if (as === 'live') host.lastKnown.clear();
  if (as === 'live') for (const domain of listed) host.lastKnown.set(domain.name, domain);
  return listed;
}

/**
 * Dumps several domains in one call. A failed command does not stop the others, and the last one, which never fails,
 * decides the result.
 */
async function dumpDomains(
  host: Host,
  uuids: readonly string[],
  as: 'live' | 'stored',
): Promise<DefinedDomain[]> {
  const dump = as === 'stored' ? 'dumpxml --inactive' : 'dumpxml';
  const commands = [...uuids.map((uuid) => `${dump} ${uuid}`), 'hostname'];
  const withinMs = LIST_WITHIN_MS + DUMP_MS * uuids.length;
  const output = await host.virsh([commands.join('; ')], { withinMs });
  const [, documents] = /^([\s\S]*<\/domain>)?/.exec(output) ?? [];
  return childrenOf(parseXml(`<domains>${documents ?? ''}</domains>`)).map(readDomainElement);
}

/**
 * The domains of the host as {@link listDomains} reads them. While libvirt waits for one, such as for a QEMU process that
 * does not end, it is asked about each domain by itself: one that it does not answer about is as in the last complete
 * list, and `isSilent`. The names come from libvirt's folders, or else from that list, which may lack new domains.
 *
 * @throws {VirshError} `late` if the `whole` list is wanted and a domain might be missing
 */
export async function observeDomains(
  host: Host,
  shell: HostShell,
  wanted: 'whole' | 'known' = 'whole',
): Promise<HostDomain[]> {
  try {
    return await listDomains(host);
  } catch (error) {
    if (!hasProblem(error, 'late')) throw error;
  }
  const stored = await readNames(host, shell);
  if (stored === undefined && wanted === 'whole')
    throw new VirshError('late', `${host.name}: libvirt waits for a domain, and its folders cannot be read`);
  const names = stored ?? [...host.lastKnown.keys()];
  const domains = await Promise.all(names.map((name) => observeDomain(host, name)));
  const missing = names.filter((_, at) => domains[at] === undefined);
  const still = missing.length === 0 ? [] : ((await readNames(host, shell)) ?? []);
  const unlisted = missing.find((name) => still.includes(name));
  if (unlisted !== undefined)
    throw new VirshError('busy', `${host.name} did not show the domain ${unlisted}`);
  return domains.flatMap((domain) => domain ?? []);
}

/** The names of all domains. Undefined if the shell does not see libvirt's folders, such as in a container. */
async function readNames({ options, lastKnown }: Host, shell: HostShell): Promise<string[] | undefined> {
  const reading = runHostScript(shell, { stateDir: options.state_dir }, ['domains'], DOMAIN_WITHIN_MS);
  const { status, lines } = await reading.catch(onProblem('unreachable', { status: 1, lines: [] }));
  const names = [...new Set(lines.map(([, name = '']) => name))];
  const isTheirs = lastKnown.size === 0 || names.some((name) => lastKnown.has(name));
  return status === 0 && names.length > 0 && isTheirs ? names : undefined;
}

/** Undefined if the domain has ended. @throws {VirshError} */
async function observeDomain(host: Host, name: string): Promise<HostDomain | undefined> {
  try {
    const live = parseXml(await host.virsh(['dumpxml', '--', name], { withinMs: DOMAIN_WITHIN_MS }));
    const running = live.attributes['id'] !== undefined;
    const domain = { ...readDomainElement(live), running, isPaused: running };
    host.lastKnown.set(name, domain);
    return domain;
  } catch (error) {
    if (hasProblem(error, 'no_domain')) return undefined;
    if (!hasProblem(error, 'late')) throw error;
    const known = host.lastKnown.get(name);
    if (known === undefined) throw new VirshError('late', silenceOf(host.name, name));
    return { ...known, isSilent: true };
  }
}

/** What is wrong with a domain that libvirt does not answer about. */
export const silenceOf = (host: string, name: string): string =>
  `libvirt on ${host} does not answer about the domain ${name}: its QEMU process hangs or does not end`;
