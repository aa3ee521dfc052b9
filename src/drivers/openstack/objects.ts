import type { Note, OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { CloudApi, FloatingIp, Image, Port, Server, Volume } from './api.ts';
import { unlessGone } from './errors.ts';
import type { Platform } from './platform.ts';
import {
  hasId,
  isCopy,
  isCreated,
  mark,
  type Phase,
  readDescription,
  refOf,
  wasLaunched,
} from './translate.ts';

/** Everything of one attempt. Names are not unique, and a lost answer may have made an object twice. */
export interface Attempt {
  /** The machine itself. */
  server: Server | undefined;
  /** Other servers that a create of this attempt made. They never ran for a tenant. */
  duplicates: readonly Server[];
  /** Servers that somebody made with the metadata of the machine. Never touched. */
  copies: readonly Server[];
  ports: readonly Port[];
  floatingIps: readonly FloatingIp[];
  bootVolumes: readonly Volume[];
}

/** All objects with marks of Berth, by attempt. */
export interface Everything {
  attempts: ReadonlyMap<OwnerRef, Attempt>;
  /** Refs of machines by the ids of their servers. */
  refs: ReadonlyMap<string, OwnerRef>;
  /** Zones of the servers that are shown. */
  zones: readonly string[];
}

/** @throws {Error} if one of them is in a cell that is down: shown without metadata, it proves no absence */
function refuseHidden(servers: readonly Server[]): void {
  const hidden = servers.find(({ metadata }) => metadata === undefined);
  if (hidden !== undefined) throw new Error(`Nova cannot show the server ${hidden.id}: its cell is down`);
}

/** A server with part of the mark is not absent, and not Berth's to remove. */
export function markIsMissing({ id }: Server, ref: OwnerRef): Error {
  const remedy = `openstack server set --property ${mark.ref}=${ref} ${id}`;
  return new Error(`the server ${id} has the tag ${ref} without the metadata ${mark.ref}: \`${remedy}\``);
}

/** The servers of the ids that Nova still has, also those that no list shows. @throws as {@link CloudApi} */
export async function readServers(api: CloudApi, ids: readonly string[]): Promise<Server[]> {
  const found = await Promise.all([...new Set(ids)].map((id) => api.server(id)));
  const there = found.filter((one): one is Server => one !== undefined && one.status !== 'DELETED');
  refuseHidden(there);
  return there;
}

/** The ids of the servers that ports name. */
const namedBy = (ports: readonly Port[]): ReadonlySet<string | undefined> =>
  new Set(ports.flatMap((port) => [port.device_id, readDescription(port)?.serverId]));

/**
 * Whether a marked server ran before any creation was completed, and neither a port nor its tag shows that Berth made it.
 * A server that an operator made as a copy has the metadata, but no tags.
 */
function isStray(one: Server, named: ReadonlySet<string | undefined>): boolean {
  const ref = refOf(one);
  const isMade = ref === undefined || hasId(one) || !wasLaunched(one);
  return !isMade && !named.has(one.id) && !one.tags?.includes(ref);
}

/** Whether the ports may have been read before a server was plugged in. */
function areEarly(ports: readonly Port[], servers: readonly Server[]): boolean {
  const named = namedBy(ports);
  return servers.some((one) => isStray(one, named));
}

/**
 * Of several servers with one mark: the one whose creation was completed, or the one on the machine's port, or the oldest.
 * A stray server is a copy that was made before the creation was complete.
 */
function identify(
  marked: readonly Server[],
  ports: readonly Port[],
): Pick<Attempt, 'server' | 'duplicates' | 'copies'> {
  const named = namedBy(ports);
  const { copies = [], own = [] } = Object.groupBy(marked, (one) =>
    isCopy(one) || isStray(one, named) ? 'copies' : 'own',
  );
  const oldest = own.toSorted((a, b) => a.created.localeCompare(b.created) || a.id.localeCompare(b.id));
  const server = oldest.find(isCreated) ?? oldest.find(({ id }) => named.has(id)) ?? oldest[0];
  return { server, duplicates: oldest.filter((one) => one !== server), copies };
}

/** Reads everything in the project. @throws as {@link CloudApi}, or {Error} while a cell is down */
export async function readEverything(platform: Platform): Promise<Everything> {
  const { api } = platform;
  const [servers, early, floatingIps, volumes] = await Promise.all([
    api.servers(),
    api.ports(),
    floatingIpsOf(platform),
    api.volumes(),
  ]);
  const ports = areEarly(early, servers) ? await api.ports() : early;
  return group([...servers, ...(await unlisted(api, servers, ports))], ports, floatingIps, volumes);
}

/** Also where offers have none now: machines may have them from before. A cloud without routers answers 404. */
async function floatingIpsOf({ api, options }: Platform): Promise<readonly FloatingIp[]> {
  const reply = api.floatingIps();
  return options.floating_network === undefined ? ((await unlessGone(reply)) ?? []) : reply;
}

/**
 * The servers on marked ports that a list omits: Nova lists no server that it keeps as soft-deleted, and may restore. A
 * server that was made between the two lists is among them too.
 */
async function unlisted(
  api: CloudApi,
  servers: readonly Server[],
  ports: readonly Port[],
): Promise<Server[]> {
  const listed = new Set(servers.map(({ id }) => id));
  const marked = ports.filter((port) => readDescription(port) !== undefined && port.device_id !== '');
  const ids = marked.map(({ device_id: id }) => id).filter((id) => !listed.has(id));
  return readServers(api, ids);
}

function group(
  servers: readonly Server[],
  ports: readonly Port[],
  floatingIps: readonly FloatingIp[],
  volumes: readonly Volume[],
): Everything {
  refuseHidden(servers);
  const own = {
    servers: Map.groupBy(servers, refOf),
    ports: Map.groupBy(ports, (one) => readDescription(one)?.ref),
    floatingIps: Map.groupBy(floatingIps, (one) => readDescription(one)?.ref),
    bootVolumes: Map.groupBy(volumes, (one) => (isCopy(one) ? undefined : one.metadata[mark.bootOf])),
  };
  const attempts = new Map<OwnerRef, Attempt>();
  for (const ref of new Set(Object.values(own).flatMap((map) => [...map.keys()])))
    if (ref !== undefined)
      attempts.set(ref, {
        ...identify(own.servers.get(ref) ?? [], own.ports.get(ref) ?? []),
        ports: own.ports.get(ref) ?? [],
        floatingIps: own.floatingIps.get(ref) ?? [],
        bootVolumes: own.bootVolumes.get(ref) ?? [],
      });
  const named = [...attempts].flatMap(([ref, { server, duplicates }]) =>
    [server, ...duplicates].flatMap((one) => (one === undefined ? [] : [[one.id, ref] as const])),
  );
  const zones = servers.flatMap((server) => server['OS-EXT-AZ:availability_zone'] || []);
  return { attempts, refs: new Map(named), zones: [...new Set(zones)] };
}

/**
 * Reads what there is of one attempt: by its tag and names, and if no server has its tag, among all servers. A part of
 * the mark on a server is no absence.
 *
 * @throws as {@link CloudApi}, or {Error} while a cell is down
 */
export async function readAttempt(platform: Platform, ref: OwnerRef): Promise<Attempt> {
  const { api } = platform;
  const [tagged, named, floatingIps, volumesNamed] = await Promise.all([
    api.servers({ tags: ref }),
    api.ports({ name: ref }),
    floatingIpsOf(platform),
    api.volumes({ name: ref }),
  ]);
  const servers = tagged.some((one) => refOf(one) === ref) ? tagged : await api.servers();
  const partly = tagged.find((one) => one.metadata !== undefined && refOf(one) === undefined);
  if (partly !== undefined) throw markIsMissing(partly, ref);
  const own = servers.filter((one) => refOf(one) === ref);
  // The port and the boot volume may have been renamed.
  const isPartial = named.length === 0 || areEarly(named, own);
  const ports = isPartial ? (await api.ports()).filter((one) => readDescription(one)?.ref === ref) : named;
  const volumes = own.length === 0 && volumesNamed.length === 0 ? await api.volumes() : volumesNamed;
  const all = [...servers, ...(await unlisted(api, servers, ports))];
  return group(all, ports, floatingIps, volumes).attempts.get(ref) ?? NOTHING;
}

export const NOTHING: Attempt = {
  server: undefined,
  duplicates: [],
  copies: [],
  ports: [],
  floatingIps: [],
  bootVolumes: [],
};

/** How far its port has got. Undefined if it has none. */
export function phaseOf({ ports }: Attempt): Phase | undefined {
  const found = ports.flatMap((port) => readDescription(port)?.phase ?? []);
  return found.find((phase) => phase === 'destroying') ?? found.find((phase) => phase === 'made') ?? found[0];
}

/** The owner, from the descriptions of its parts. */
export const shortNoteOf = ({ ports, floatingIps }: Attempt): Note | undefined =>
  [...ports, ...floatingIps].map((part) => readDescription(part)?.note).find((note) => note !== undefined);

/** The objects of an attempt besides its machine, as words for an operator. */
export function partsOf(attempt: Attempt): string[] {
  return [
    ...attempt.duplicates.map(({ id }) => `server ${id}`),
    ...attempt.ports.map(({ id }) => `port ${id}`),
    ...attempt.floatingIps.map(({ id, floating_ip_address: address }) => `floating IP ${address} (${id})`),
    ...attempt.bootVolumes.map(({ id }) => `boot volume ${id}`),
  ];
}

/**
 * Images that shelved servers of this project left behind: Nova names them after the server, and tries once to delete them
 * with it. An administrator is shown those of other projects too.
 */
export async function shelveImages(
  { api }: Platform,
  ref: OwnerRef,
  serverIds: readonly string[],
): Promise<Image[]> {
  const { id: project } = (await api.client.session()).project;
  const named = api.images({ name: `${ref}-shelved` });
  const ofServers = serverIds.map((id) => api.images({ instance_uuid: id, image_type: 'snapshot' }));
  const found = (await Promise.all([named, ...ofServers])).flat();
  const shelved = found.filter(({ name, owner }) => name.endsWith('-shelved') && owner === project);
  return [...new Map(shelved.map((image) => [image.id, image])).values()];
}
