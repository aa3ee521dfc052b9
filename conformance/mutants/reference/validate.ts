import type { Issue } from './errors.ts';
import type { InstanceType, Offer, Volume, VolumeLocation } from './model.ts';
import { findKeyProblem } from './ssh-key-line.ts';

/** The resources that the fields of a request may refer to. */
export interface RequestContext {
  offers: readonly Offer[];
  locations: readonly VolumeLocation[];
  volumes: ReadonlyMap<string, Volume>;
  /** Regions of the live instances, by id. */
  instanceRegions: ReadonlyMap<string, string>;
}

export interface WrittenFile {
  path: string;
  content: string;
  owner?: string;
  permissions?: string;
}

/** A create that `validateCreate` accepts. */
export interface CreateRequest {
  configuration_id: string;
  region: string;
  ssh_keys: string[];
  name?: string;
  operating_system_image?: string;
  root_disk_size_gb?: number;
  cloud_init?: { write_files?: WrittenFile[]; runcmd?: string[] };
  volume_ids?: string[];
}

export interface CreateVolumeRequest {
  name: string;
  size_gb: number;
  region: string;
  type?: string;
  instance_ids?: string[];
}

export const instanceTypes: readonly InstanceType[] = ['SPOT', 'DEDICATED', 'BARE_METAL', 'CLUSTER'];

type Check = (value: unknown, path: string) => Issue[];

const expecting =
  (what: string, holds: (value: unknown) => boolean): Check =>
  (value, path) =>
    holds(value) ? [] : [{ path, message: `expected ${what}` }];

const matching = (what: string, pattern: RegExp): Check =>
  expecting(what, (value) => typeof value === 'string' && pattern.test(value) && value.isWellFormed());

const text = matching('text', /^[^\0]*$/);
const someText = matching('text that is not empty', /^[^\0]+$/);
const flag = expecting('a boolean', (value) => typeof value === 'boolean');
const size = expecting(
  'a number above 0',
  (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
);

function listOf(item: Check, min = 0): Check {
  return (value, path) => {
    if (!Array.isArray(value)) return [{ path, message: 'expected a list' }];
    if (value.length < min) return [{ path, message: `expected at least ${min} item` }];
    return value.flatMap((one, index) => item(one, `${path}[${index}]`));
  };
}

function objectOf(required: Record<string, Check>, optional: Record<string, Check> = {}): Check {
  return (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return [{ path, message: 'expected an object' }];
    const fields = new Map<string, unknown>(Object.entries(value));
    const at = (name: string) => (path === '' ? name : `${path}.${name}`);
    const missing = Object.keys(required).filter((name) => !fields.has(name));
    return [
      ...missing.map((name) => ({ path: at(name), message: 'is required' })),
      ...Object.entries({ ...required, ...optional })
        .filter(([name]) => fields.has(name))
        .flatMap(([name, check]) => check(fields.get(name), at(name))),
    ];
  };
}

const sshKey: Check = (value, path) => {
  const message = typeof value === 'string' ? findKeyProblem(value) : 'expected text';
  return message === undefined ? [] : [{ path, message }];
};

/** Parts of at most 255 bytes, none of them empty, `.` or `..`. */
const isPlainPath = (path: string): boolean =>
  path.startsWith('/') &&
  path.isWellFormed() &&
  !/\p{Cc}/u.test(path) &&
  path
    .slice(1)
    .split('/')
    .every((part) => !['', '.', '..'].includes(part) && Buffer.byteLength(part) <= 255);

const writtenFile = objectOf(
  {
    path: expecting('a plain absolute path', (value) => typeof value === 'string' && isPlainPath(value)),
    content: text,
  },
  {
    owner: matching('user or user:group', /^[a-z_][a-z0-9_-]*(:[a-z_][a-z0-9_-]*)?$/),
    permissions: matching('an octal mode', /^0?[0-7]{3,4}$/),
  },
);

const cloudInit = objectOf(
  {},
  {
    runcmd: listOf(someText),
    packages: listOf(matching('a package name', /^[A-Za-z0-9]([A-Za-z0-9+._:~=-]*[A-Za-z0-9+._~])?$/)),
    package_update: flag,
    package_upgrade: flag,
    write_files: listOf(writtenFile),
  },
);

const createRequest = objectOf(
  { configuration_id: someText, region: someText, ssh_keys: listOf(sshKey, 1) },
  {
    name: someText,
    operating_system_image: someText,
    root_disk_size_gb: size,
    cloud_init: cloudInit,
    volume_ids: listOf(someText),
  },
);

/** O: CreateInstanceRequest. */
export function validateCreate(body: unknown, { offers, volumes }: RequestContext): Issue[] {
  const issues = createRequest(body, '');
  if (issues.length > 0) return issues;
  const asked = body as CreateRequest;
  const offer = offers.find(({ id }) => id === asked.configuration_id);
  if (offer === undefined) return [{ path: 'configuration_id', message: 'there is no such offer' }];
  if (!offer.free.has(asked.region)) issues.push({ path: 'region', message: 'the offer is not sold there' });
  if (asked.operating_system_image !== undefined && !offer.images.includes(asked.operating_system_image))
    issues.push({ path: 'operating_system_image', message: `expected one of ${offer.images.join(', ')}` });
  if (asked.cloud_init !== undefined && !offer.supportsCloudInit)
    issues.push({ path: 'cloud_init', message: 'the offer does not support it' });
  for (const [index, id] of (asked.volume_ids ?? []).entries())
    if (volumes.get(id)?.region !== asked.region || volumes.get(id)?.isDeleted)
      issues.push({ path: `volume_ids[${index}]`, message: 'there is no such volume in that region' });
  return issues;
}

const createVolumeRequest = objectOf(
  { name: someText, size_gb: size, region: someText },
  { type: someText, instance_ids: listOf(someText) },
);

/** O: CreateVolumeRequest. */
export function validateVolume(body: unknown, { locations, instanceRegions }: RequestContext): Issue[] {
  const issues = createVolumeRequest(body, '');
  if (issues.length > 0) return issues;
  const asked = body as CreateVolumeRequest;
  const location = locations.find(({ id }) => id === asked.region);
  if (location === undefined) return [{ path: 'region', message: 'no volumes are offered there' }];
  if (asked.type !== undefined && !location.types.includes(asked.type))
    issues.push({ path: 'type', message: `expected one of ${location.types.join(', ')}` });
  for (const [index, id] of (asked.instance_ids ?? []).entries())
    if (instanceRegions.get(id) !== asked.region)
      issues.push({ path: `instance_ids[${index}]`, message: 'there is no such instance in that region' });
  return issues;
}

/** O: attach, "required, min 1". */
export const validateAttach = (body: unknown): Issue[] =>
  objectOf({ instance_ids: listOf(someText, 1) })(body, '');

/** O: detach, "when omitted, detaches from all instances". */
export const validateDetach = (body: unknown): Issue[] =>
  objectOf({}, { instance_ids: listOf(someText, 1) })(body, '');

/** O: POST /auth/token. Exactly one kind of credential. */
export function validateToken(body: unknown): Issue[] {
  const issues = objectOf({}, { api_key: text, username: text, password: text })(body, '');
  if (issues.length > 0) return issues;
  const { api_key, username, password } = body as Record<string, unknown>;
  const isKey = api_key !== undefined && username === undefined && password === undefined;
  const isLogin = api_key === undefined && username !== undefined && password !== undefined;
  return isKey || isLogin ? [] : [{ path: '', message: 'expected api_key, or username and password' }];
}
