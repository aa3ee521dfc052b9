import type {
  CopyOfResource,
  Endpoint,
  MachineFault,
  Note,
  ObservedMachine,
  ObservedVolume,
  OwnerRef,
  Power,
} from '../../orchestrator/model/platform-driver.ts';
import { shortenNote } from '../../orchestrator/model/platform-resource.ts';
import { usualLoginUser } from '../kit/login-user.ts';
import type { FloatingIp, Port, Server, Volume } from './api.ts';
import type { OpenStackConfig, OpenStackOffer } from './options.ts';
import { toUtc } from './platform.ts';

/** Berth's mark in the metadata of servers and volumes. Without `ref` one is never touched. */
export const mark = {
  ref: 'berth_ref',
  /** The id of the server or the volume itself, written when its creation is complete. A copy has another id. */
  id: 'berth_id',
  offer: 'berth_offer',
  loginUser: 'berth_login_user',
  /** `release` or `hold`: whether a stop shelves the server. */
  onStop: 'berth_on_stop',
  restart: 'berth_restart',
  /** On a boot volume: the ref of its machine. Such a volume has no `ref`. */
  bootOf: 'berth_boot_of',
  /** On a volume, with the id of a server appended: the ref of that server's machine. */
  server: 'berth_server_',
} as const;

const MARK_PREFIX = 'berth_';
const NOTE_PREFIX = 'berth_note_';
/** The longest value of metadata in Nova and Cinder. */
const VALUE_LENGTH = 255;

export const isMarkKey = (key: string): boolean => key.startsWith(MARK_PREFIX);

/** Whether the ref may be a name, and a tag of Nova, which has at most 60 characters. */
export function isName(ref: OwnerRef): boolean {
  return /^[a-z][a-z0-9-]{0,59}$/.test(ref);
}

/** A note as metadata: in pieces, with everything but printable ASCII escaped as in a URL. */
export function toNoteMetadata(note: string): Record<string, string> {
  const text = note.replaceAll(/[^!-$&-~]+/g, encodeURIComponent);
  const pieces = text.match(new RegExp(`.{1,${VALUE_LENGTH}}`, 'g')) ?? [];
  return Object.fromEntries(pieces.map((piece, index) => [`${NOTE_PREFIX}${index}`, piece]));
}

export function noteOf(metadata: Readonly<Record<string, string>>): string | undefined {
  const pieces: string[] = [];
  for (let index = 0; ; index += 1) {
    const piece = metadata[`${NOTE_PREFIX}${index}`];
    if (piece === undefined) break;
    pieces.push(piece);
  }
  try {
    return pieces.length === 0 ? undefined : decodeURIComponent(pieces.join(''));
  } catch {
    return undefined;
  }
}

export const refOf = ({ metadata }: Pick<Server, 'metadata'>): OwnerRef | undefined => metadata?.[mark.ref];

type Marked = Pick<Server | Volume, 'id' | 'metadata'>;

/** Whether the creation of the server or the volume is complete, and it is not a copy. */
export const isCreated = ({ id, metadata }: Marked): boolean => metadata?.[mark.id] === id;

export const hasId = ({ metadata }: Marked): boolean => metadata?.[mark.id] !== undefined;

/** A server from a snapshot and a volume from a backup have the metadata of their original. */
export const isCopy = (one: Marked): boolean => hasId(one) && !isCreated(one);

export const toCopy = (ref: OwnerRef, { id, name }: Pick<Server, 'id' | 'name'>): CopyOfResource => ({
  ref,
  name: `${name} (${id})`,
});

/** Whether it ever ran. Nova starts no second server on a port. */
export const wasLaunched = (server: Server): boolean => Boolean(server['OS-SRV-USG:launched_at']);

export const taskOf = (server: Server): string | undefined => server['OS-EXT-STS:task_state'] ?? undefined;

export const phases = ['making', 'made', 'destroying'] as const;
export type Phase = (typeof phases)[number];

/** What the description of a port or a floating IP says, which have no metadata: `berth REF PHASE SERVER NOTE`. */
export interface Description {
  ref: OwnerRef;
  phase: Phase;
  /** The id of the server. Undefined before that is known. */
  serverId: string | undefined;
  /** Whether Nova may have been asked for the server. */
  isAsked?: boolean;
  /** The owner part of the note. */
  note: Note | undefined;
}

const DESCRIPTION_BY = 'berth';
const NO_SERVER = '-';
const ASKED = 'asked';
/** The longest description in Neutron. */
const DESCRIPTION_LENGTH = 255;

export function toDescription({ ref, phase, serverId, isAsked, note }: Description): string {
  const text = [DESCRIPTION_BY, ref, phase, serverId ?? (isAsked ? ASKED : NO_SERVER)].join(' ');
  const whole = `${text} ${(note && shortenNote(note)) ?? ''}`.trimEnd();
  return whole.length <= DESCRIPTION_LENGTH ? whole : text;
}

export function readDescription({ description }: Pick<Port, 'description'>): Description | undefined {
  const [by, ref, phase, server = NO_SERVER, ...rest] = (description ?? '').split(' ');
  const known = phases.find((one) => one === phase);
  if (by !== DESCRIPTION_BY || ref === undefined || known === undefined) return undefined;
  const isAsked = server === ASKED;
  const serverId = server === NO_SERVER || isAsked ? undefined : server;
  return { ref, phase: known, serverId, isAsked, note: rest.length === 0 ? undefined : rest.join(' ') };
}

export function imageOf(image: string, offer: OpenStackOffer, { images }: OpenStackConfig) {
  const { image: name = image, login_user: user } = offer.images[image] ?? images[image] ?? {};
  return { name, loginUser: user ?? usualLoginUser(image) };
}

const POWERED_ON = 1;
const POWERED_OFF = 4;
const hasPower = (server: Server, state: number): boolean => server['OS-EXT-STS:power_state'] === state;

/** The power of a complete server by its status. `task` is what Nova is doing with it now. */
const powers: Readonly<Record<string, (task: string, server: Server) => Power>> = {
  ACTIVE: (task) => ofRunning(task),
  PASSWORD: (task) => ofRunning(task),
  MIGRATING: (_task, server) => (hasPower(server, POWERED_OFF) ? 'stopped' : 'running'),
  VERIFY_RESIZE: (_task, server) => (hasPower(server, POWERED_OFF) ? 'stopped' : 'running'),
  SHUTOFF: (task) => (task === '' || /^(resize|migrating|shelving)/.test(task) ? 'stopped' : 'starting'),
  SHELVED: ofShelved,
  SHELVED_OFFLOADED: ofShelved,
  PAUSED: () => 'paused',
  SUSPENDED: () => 'paused',
  // Somebody may restore it. Once Nova has reaped it, it is gone.
  SOFT_DELETED: () => 'stopping',
  ERROR: (_task, server) => (hasPower(server, POWERED_ON) ? 'running' : 'paused'),
};

function ofRunning(task: string): Power {
  if (/^(powering-off|shelving|suspending|pausing)/.test(task)) return 'stopping';
  return /^(reboot|rebuild)/.test(task) ? 'starting' : 'running';
}

function ofShelved(task: string): Power {
  if (task === '') return 'stopped';
  return task.startsWith('shelving') ? 'stopping' : 'starting';
}

/**
 * The power of a server. A delete from outside counts once Nova has finished it. Any other status, such as REBOOT, REBUILD,
 * RESIZE, RESCUE and those of a later Nova, reads as `starting`.
 */
function powerOf(server: Server): Power {
  const { status } = server;
  const task = taskOf(server) ?? '';
  if (!isCreated(server)) return status === 'ERROR' ? 'failed' : 'building';
  if (task === 'deleting') return 'stopping';
  return powers[status]?.(task, server) ?? 'starting';
}

/** What an operator should know of a server that somebody changed at the cloud. */
function faultOf(server: Server): MachineFault | undefined {
  const { id, status } = server;
  if (status === 'SHELVED' && taskOf(server) !== undefined) return undefined;
  const faults: Record<string, [finding: string, remedy: string]> = {
    ERROR: [
      `Nova shows it in ERROR: ${detailOf(server)}`,
      `Find the cause, then \`openstack server set --state active ${id}\`.`,
    ],
    VERIFY_RESIZE: [
      'A resize or a migration waits for its confirmation',
      `\`openstack server resize confirm ${id}\`, or revert.`,
    ],
    RESCUE: ['It was booted into rescue mode', `\`openstack server unrescue ${id}\`.`],
    SHELVED: [
      'It is shelved but still on its host, and holds its GPUs',
      'Set `shelved_offload_time = 0` in nova.conf, or allow Berth shelveOffload.',
    ],
  };
  const [finding, remedy] = faults[status] ?? [];
  return finding === undefined || remedy === undefined ? undefined : { finding, remedy };
}

export function detailOf({ status, fault }: Server): string {
  return fault?.message ?? `Nova shows ${status}`;
}

export function fromPlatform(
  server: Server,
  ref: OwnerRef,
  endpoint: Endpoint | undefined,
  host: string | undefined,
): ObservedMachine {
  const power = powerOf(server);
  const note = noteOf(server.metadata ?? {});
  const fault = isCreated(server) ? faultOf(server) : undefined;
  return {
    ref,
    power: power === 'running' && endpoint === undefined ? 'starting' : power,
    createdAt: Date.parse(server.created),
    ...((power === 'failed' || power === 'paused') && { detail: detailOf(server) }),
    endpoint,
    host,
    fault,
    ...(server.name !== ref && { renamedTo: server.name }),
    note,
  };
}

export function endpointOf(
  server: Server,
  port: Port | undefined,
  floating: FloatingIp | undefined,
  needsFloating: boolean,
): Endpoint | undefined {
  const addresses = port?.fixed_ips.map(({ ip_address: address }) => address) ?? [];
  const fixed = addresses.find((address) => !address.includes(':')) ?? addresses[0];
  const publicIp = needsFloating ? floating?.floating_ip_address : fixed;
  if (publicIp === undefined) return undefined;
  return {
    publicIp,
    ...(needsFloating && fixed !== undefined && { privateIp: fixed }),
    sshPort: 22,
    sshUsername: server.metadata?.[mark.loginUser] ?? 'root',
  };
}

/**
 * The ids of the servers that a volume is attached to. Cinder lists no attachment of a server that is shelved: the volume
 * is reserved for it.
 */
export function usersOf({ attachments, metadata, status }: Volume): string[] {
  const reserved =
    status === 'reserved' ? Object.keys(metadata).filter((key) => key.startsWith(mark.server)) : [];
  const listed = attachments.map(({ server_id: id }) => id);
  return [...new Set([...listed, ...reserved.map((key) => key.slice(mark.server.length))])];
}

/** Converts a volume. `refs` are the machines by the ids of their servers. */
export function fromPlatformVolume(
  volume: Volume,
  ref: OwnerRef,
  refs: ReadonlyMap<string, OwnerRef>,
): ObservedVolume {
  const note = noteOf(volume.metadata);
  const users = usersOf(volume).flatMap((id) => refs.get(id) ?? volume.metadata[`${mark.server}${id}`] ?? []);
  return {
    ref,
    attachedTo: [...new Set(users)],
    createdAt: Date.parse(toUtc(volume.created_at)),
    sizeGb: volume.size,
    ...(volume.name !== ref && { renamedTo: volume.name }),
    note,
  };
}
