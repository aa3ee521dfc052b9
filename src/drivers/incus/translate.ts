import { renderCloudInit } from '../../orchestrator/cloud-init/render.ts';
import { refOf as firstRefOf, idOf } from '../../orchestrator/model/attempt.ts';
import type {
  Endpoint,
  MachineSpec,
  ObservedMachine,
  ObservedVolume,
  OwnerRef,
  Power,
  VolumeSpec,
} from '../../orchestrator/model/platform-driver.ts';
import { usualLoginUser } from '../kit/login-user.ts';
import { type ForwardPort, type Instance, SINGLE, type Volume } from './api.ts';
import type { IncusConfig, IncusOffer } from './options.ts';

/** Berth's mark. Without `createdBy` an instance or volume is never touched, nor a volume whose name is not its ref. */
export const mark = {
  ref: 'user.berth.ref',
  /** Incus' id ({@link UUID}) of the instance that was made for the ref. A copy has the mark too, but another id. */
  uuid: 'user.berth.uuid',
  createdBy: 'user.berth.created-by',
  note: 'user.berth.note',
  offer: 'user.berth.offer',
  /** How far the creation has got: absent, then {@link phases}. */
  phase: 'user.berth.phase',
  loginUser: 'user.berth.login-user',
  /** Whether the machine holds its GPUs, as one of {@link gpuClaims}. If absent, it does. */
  gpus: 'user.berth.gpus',
  restart: 'user.berth.restart',
  /** On a machine: the claim that last attached or detached a volume. */
  change: 'user.berth.change',
  /** On a copy of a volume: its original. Without `createdBy` the copy is incomplete. */
  copyOf: 'user.berth.copy-of',
  /** On a volume: its copy, if the volume has not been attached since. */
  copiedTo: 'user.berth.copied-to',
  /** On a copied volume: the creation time of its original. */
  createdAt: 'user.berth.created-at',
} as const;

/** `built`: its disk is complete. `created`: it has run, with an endpoint. */
export const phases = { built: 'built', created: 'created' } as const;

/** `open`: it names GPUs, but other claims to them have not been checked. `held`: it holds them. */
export const gpuClaims = { open: 'open', held: 'held' } as const;

/** The key of Incus' id. A rename, a move and a restored backup keep the id. A copy gets another one. */
export const UUID = 'volatile.uuid';

const CREATED_BY = 'berth';
export const SSH_PORT = 22;
const NIC = 'eth0';
const SENTINEL_YEAR = 1970;

/** Whether Incus accepts the ref as a name. Refs are used as names unchanged. */
export function isName(ref: OwnerRef): boolean {
  return /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/.test(ref);
}

export function isOurs({ name, config }: Pick<Instance | Volume, 'name' | 'config'>): boolean {
  return config[mark.createdBy] === CREATED_BY && config[mark.ref] === name;
}

/** Whether it has Berth's mark, under any name. */
export function isMarked({ config }: Pick<Instance | Volume, 'config'>): boolean {
  return config[mark.createdBy] === CREATED_BY && config[mark.ref] !== undefined;
}

export function refOf({ name, config }: Pick<Instance | Volume, 'name' | 'config'>): OwnerRef {
  return isMarked({ config }) ? (config[mark.ref] ?? name) : name;
}

/**
 * The device name of a volume in a machine. It is the same for all attempts, so that the guest finds the volume at
 * the same path and serial number after a move.
 */
export function deviceOf(ref: OwnerRef): string {
  const id = idOf(ref);
  return id === ref ? ref : firstRefOf(id);
}

/** Whether it has only part of the mark. An operator may have removed the rest, so it may still be Berth's. */
export function hasPartOfMark({ config }: Pick<Instance | Volume, 'config'>): boolean {
  if (config[mark.copyOf] !== undefined) return false;
  return Object.keys(config).some(isMarkKey);
}

export const isMarkKey = (key: string): boolean => key.startsWith('user.berth.');

export function gib(gb: number): string {
  return `${Math.round(gb * 1024)}MiB`;
}

const UNITS: Record<string, number> = {
  '': 1,
  B: 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

/** Bytes of a size such as `10GiB`. Undefined if it is not an absolute size, such as `50%`. */
export function bytesOf(size: string | undefined): number | undefined {
  const [, digits, unit = ''] = /^(\d+)([A-Za-z]*)$/.exec(size ?? '') ?? [];
  const factor = UNITS[unit];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}

/** Number of CPUs in a limit such as `2`, `0-3` or `0,2,5-6`. */
export function cpusOf(limit: string | undefined): number {
  if (limit === undefined || limit === '') return 0;
  if (/^\d+$/.test(limit)) return Number(limit);
  return limit.split(',').reduce((sum, part) => {
    const [first = 0, last = first] = part.split('-').map(Number);
    return sum + (last - first + 1);
  }, 0);
}

export interface ImageChoice {
  alias: string;
  loginUser: string;
}

export function imageOf(image: string, offer: IncusOffer, { images }: IncusConfig): ImageChoice {
  const { alias = image, login_user: user } = offer.images[image] ?? images[image] ?? {};
  return { alias, loginUser: user ?? usualLoginUser(image) };
}

export function toPlatform(
  spec: MachineSpec,
  offer: IncusOffer,
  options: IncusConfig,
  gpus: readonly string[],
): object {
  const { alias, loginUser } = imageOf(spec.image, offer, options);
  const { vendorData, userData } = renderCloudInit(spec, { loginUser });
  return {
    name: spec.ref,
    type: offer.kind,
    source: { type: 'image', ...(/^[0-9a-f]{12,64}$/.test(alias) ? { fingerprint: alias } : { alias }) },
    profiles: offer.profiles ?? options.profiles,
    config: {
      [mark.ref]: spec.ref,
      [mark.createdBy]: CREATED_BY,
      [mark.note]: spec.note,
      [mark.offer]: spec.offerId,
      [mark.loginUser]: loginUser,
      ...(gpus.length > 0 && { [mark.gpus]: gpuClaims.open }),
      'limits.cpu': String(spec.vcpus),
      'limits.memory': gib(spec.memoryGb),
      'cloud-init.vendor-data': vendorData,
      'cloud-init.user-data': userData,
      ...(offer.kind === 'container' && { 'security.idmap.isolated': 'true' }),
    },
    devices: {
      root: {
        type: 'disk',
        path: '/',
        pool: offer.storage_pool ?? options.storage_pool,
        size: gib(spec.rootDiskGb),
      },
      [NIC]: nicOf(offer.network ?? options.network, options),
      ...gpuDevices(gpus),
    },
  };
}

/** The network card of a machine. A tenant is root in its machine, so its network limits must be set outside. */
function nicOf(network: string, { isolation, acls }: IncusConfig): Record<string, string> {
  return {
    type: 'nic',
    name: NIC,
    network,
    ...(isolation &&
      acls.length === 0 && {
        'security.port_isolation': 'true',
        'security.mac_filtering': 'true',
        'security.ipv4_filtering': 'true',
        'security.ipv6_filtering': 'true',
      }),
    ...(acls.length > 0 && {
      'security.acls': acls.join(','),
      'security.acls.default.ingress.action': 'reject',
      'security.acls.default.egress.action': 'reject',
    }),
  };
}

export function gpuDevices(pci: readonly string[]): Record<string, Record<string, string>> {
  return Object.fromEntries(
    pci.map((address, index) => [`gpu${index}`, { type: 'gpu', gputype: 'physical', pci: address }]),
  );
}

export function isRunning({ status_code: code }: Pick<Instance, 'status_code'>): boolean {
  return code === 101 || code === 103 || code === 111 || code === 113;
}

/** Whether it is freezing or frozen. Incus also reports a virtual machine with halted processors as frozen. */
export function isFrozen({ status_code: code }: Pick<Instance, 'status_code'>): boolean {
  return code === 109 || code === 110;
}

export function isStopped({ status_code: code }: Pick<Instance, 'status_code'>): boolean {
  return code === 102;
}

/** Whether the member cannot report on it, because it is offline or has just started. */
export function isUnknown({ status_code: code }: Pick<Instance, 'status_code'>): boolean {
  return code === 112;
}

function powerOf(instance: Instance, endpoint: Endpoint | undefined): Power {
  const isCreated = instance.config[mark.phase] === phases.created;
  if (!isCreated) return 'building';
  if (isRunning(instance)) return endpoint === undefined ? 'starting' : 'running';
  if (isStopped(instance)) return 'stopped';
  if (isFrozen(instance)) return 'paused';
  return instance.status_code === 106 || instance.status_code === 105 ? 'starting' : 'stopping';
}

/** Converts an instance. `isMoving`: Incus has stopped it for a move, or given it a temporary name and not renamed it yet. */
export function fromPlatform(
  instance: Instance,
  endpoint: Endpoint | undefined,
  isMoving = false,
): ObservedMachine {
  const { name, config, location } = instance;
  const ref = refOf(instance);
  const note = config[mark.note];
  const shown = powerOf(instance, endpoint);
  const power = isMoving && shown === 'stopped' ? 'stopping' : shown;
  return {
    ref,
    power,
    createdAt: timeOf(instance.created_at),
    ...(power === 'paused' && {
      detail: `Incus shows ${instance.name} as frozen, and does not say why`,
    }),
    endpoint,
    host: location,
    ...(name !== ref && !isMoving && { renamedTo: name }),
    note,
  };
}

/** The machine's address on its network, once the machine reports it. */
export function addressOf({ state }: Pick<Instance, 'state'>): string | undefined {
  const addresses = (state?.network?.[NIC] ?? firstNic(state))?.addresses ?? [];
  const global = addresses.filter(({ scope }) => scope === 'global');
  return (global.find(({ family }) => family === 'inet') ?? global[0])?.address;
}

/** The first interface except `lo`. Virtual machines name their interfaces themselves. */
function firstNic(state: Instance['state']) {
  return Object.entries(state?.network ?? {}).find(([name]) => name !== 'lo')?.[1];
}

/** The description of a machine's forwarded port, which marks it as Berth's. */
export function forwardMark(ref: OwnerRef, project: string): string {
  return `berth ${ref} ${project}`;
}

export function refOfForward({ description }: Pick<ForwardPort, 'description'>): OwnerRef | undefined {
  const [by, ref] = description.split(' ');
  return by === 'berth' ? ref : undefined;
}

/** The project of a forwarded port's machine. Projects may share a network. */
export function projectOfForward({ description }: Pick<ForwardPort, 'description'>): string | undefined {
  return description.split(' ')[2];
}

/** Milliseconds since the epoch; 0 if Incus gives its zero time. */
function timeOf(text: string): number {
  const at = Date.parse(text);
  return Number.isNaN(at) || new Date(at).getUTCFullYear() < SENTINEL_YEAR ? 0 : at;
}

export function toPlatformVolume(spec: VolumeSpec, { volume_content: content }: IncusConfig): object {
  return {
    name: spec.ref,
    content_type: content,
    config: {
      size: gib(spec.sizeGb),
      [mark.ref]: spec.ref,
      [mark.createdBy]: CREATED_BY,
      [mark.note]: spec.note,
      ...(content === 'filesystem' && { 'security.shifted': 'true' }),
    },
  };
}

/** Converts a volume. `users` are the machines that it is attached to. */
export function fromPlatformVolume(volume: Volume, users: readonly OwnerRef[]): ObservedVolume {
  const bytes = bytesOf(volume.config['size']);
  const note = volume.config[mark.note];
  const host = hostOf(volume);
  return {
    ref: volume.name,
    attachedTo: [...users],
    createdAt: timeOf(volume.config[mark.createdAt] ?? volume.created_at),
    ...(bytes !== undefined && { sizeGb: bytes / 2 ** 30 }),
    host,
    note,
  };
}

export function rootOf(devices: Instance['devices']): Record<string, string> | undefined {
  return Object.values(devices).find(isRoot);
}

export const isRoot = ({ type, path }: Record<string, string>): boolean => type === 'disk' && path === '/';

/** The member that holds the volume. Undefined if every member reaches it. */
export function hostOf({ location }: Pick<Volume, 'location'>): string | undefined {
  return location === '' || location === SINGLE ? undefined : location;
}

/** The names of the instances that have the volume as a device. */
export function usersOf({ used_by: usedBy }: Pick<Volume, 'used_by'>): string[] {
  return (usedBy ?? []).flatMap((path) => /^\/1\.0\/instances\/([^/?]+)/.exec(path)?.[1] ?? []).sort();
}
