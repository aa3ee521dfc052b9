import { randomBytes } from 'node:crypto';
import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Catalog, Offer } from '../../orchestrator/catalog/catalog.ts';
import {
  type IncusApi,
  type Instance,
  type Member,
  type Resources,
  SINGLE,
  targetOf,
  type Volume,
} from './api.ts';
import { IncusRefusal } from './errors.ts';
import type { InstanceReader } from './instances.ts';
import { type IncusConfig, type IncusOffer, incusOfferSchema } from './options.ts';
import { isMarked, isStopped, isUnknown, mark, phases, refOf, rootOf } from './translate.ts';

/** A member, or the single daemon, with its resources. */
export interface Host {
  /** `none` without a cluster, as in Incus' answers. */
  name: string;
  groups: readonly string[];
  /** Whether Incus reports it as online, and its instances could be read. */
  isOnline: boolean;
  /** Whether it votes in the cluster's database. */
  isVoter: boolean;
  resources: Resources | undefined;
  pools: ReadonlyMap<string, Pool>;
}

/** Hardware changes rarely, so it is cached; free capacity is counted each time. */
const HARDWARE_KEPT_MS = 60_000;
const ALONE: Member = { server_name: SINGLE, status: 'Online', message: '', roles: ['database'] };
export const NO_MEMBER = 'Incus reports that most database members of the cluster are offline';

/** The resources of every member, and what occupies them. */
export interface Fleet {
  hosts: readonly Host[];
  /** The instances of every project. */
  instances: readonly Instance[];
  /** Names of all instances in Berth's project, including those that could not be read. */
  names: readonly string[];
  /** Names and refs of stopped machines that have given their unit back: they take up only their disks. */
  released: ReadonlySet<string>;
  volumes: readonly (Volume & { pool: string })[];
}

type Hardware = { at: number; resources: Resources; pools: Map<string, Pool> };

export class FleetReader {
  readonly #api: IncusApi;
  readonly #instances: InstanceReader;
  readonly #options: IncusConfig;
  readonly #catalog: Catalog;
  readonly #now: () => number;
  readonly #hardware = new Map<string, Hardware>();

  constructor(
    { api, instances }: { api: IncusApi; instances: InstanceReader },
    options: IncusConfig,
    catalog: Catalog,
    now: () => number,
  ) {
    this.#api = api;
    this.#instances = instances;
    this.#options = options;
    this.#now = now;
    this.#catalog = catalog;
  }

  get #pools(): readonly string[] {
    const named = [...this.#catalog.offers.values()].flatMap((offer) => offerOf(offer).storage_pool ?? []);
    const { storage_pool: machines, volume_pool: volumes = machines } = this.#options;
    return [...new Set([machines, volumes, ...named])];
  }

  /** The pool on that member when the hardware was last read. Undefined if it was not read. */
  poolAt(member: string, pool: string): Pool | undefined {
    return this.#hardware.get(member)?.pools.get(pool);
  }

  async read(): Promise<Fleet> {
    const volumePool = this.#options.volume_pool ?? this.#options.storage_pool;
    const [members, { instances, names, silent }, others, volumes] = await Promise.all([
      this.#api.members(),
      this.#instances.read({ state: false }),
      this.#api.instancesOfOthers(),
      this.#api.volumes(volumePool),
    ]);
    const unread = new Set([...silent, ...others.filter(isUnread).map(({ location }) => location)]);
    const released = instances.filter((one) => this.#isReleased(one));
    const hosts = await Promise.all(
      (members.length === 0 ? [ALONE] : members).map((member) => this.#host(member, unread)),
    );
    return {
      hosts,
      instances: [...instances.map((one) => (released.includes(one) ? withoutLimits(one) : one)), ...others],
      names,
      released: new Set(released.flatMap((one) => [one.name, refOf(one)])),
      volumes: volumes.map((volume) => ({ ...volume, pool: volumePool })),
    };
  }

  #isReleased(instance: Instance): boolean {
    const offer = this.#catalog.offers.get(instance.config[mark.offer] ?? '');
    const isCreated = isMarked(instance) && instance.config[mark.phase] === phases.created;
    return isCreated && isStopped(instance) && offer?.onStop === 'release';
  }

  async #host(
    { server_name: name, status, groups, roles }: Member,
    silent: ReadonlySet<string>,
  ): Promise<Host> {
    const isOnline = status === 'Online' && !silent.has(name);
    const found = isOnline ? await this.#hardwareOf(name) : undefined;
    return {
      name,
      groups: groups ?? [],
      isOnline,
      isVoter: roles?.includes('database') ?? false,
      resources: found?.resources,
      pools: found?.pools ?? new Map(),
    };
  }

  /**
   * Reads the hardware of a member. Undefined if it does not answer. @throws {IncusRefusal} if Berth may not read it
   */
  async #hardwareOf(name: string): Promise<Hardware | undefined> {
    const known = this.#hardware.get(name);
    if (known !== undefined && this.#now() - known.at < HARDWARE_KEPT_MS) return known;
    const readPools = this.#pools.map(
      async (pool): Promise<[string, Pool]> => [pool, await readPool(this.#api, pool, name)],
    );
    const read = Promise.all([this.#api.resources(name), Promise.all(readPools)]);
    const found = await read.catch((error) => {
      if (error instanceof IncusRefusal) throw error;
      return undefined;
    });
    if (found === undefined) return undefined;
    const [resources, pools] = found;
    const hardware = { at: this.#now(), resources, pools: new Map(pools) };
    this.#hardware.set(name, hardware);
    return hardware;
  }
}

function withoutLimits(instance: Instance): Instance {
  const { 'limits.cpu': _cpu, 'limits.memory': _memory, ...expanded_config } = instance.expanded_config;
  return { ...instance, expanded_config };
}

/** Whether Incus shows only its name because its member did not answer. Its resources are then unknown. */
function isUnread(instance: Instance): boolean {
  return isUnknown(instance) && rootOf(instance.expanded_devices) === undefined;
}

/** An offer's `machine:`. It was validated when the catalog was read. */
export function offerOf(offer: Offer | undefined): IncusOffer {
  return incusOfferSchema.parse(offer?.machine ?? {});
}

/**
 * Whether the fleet can be judged. A cluster only answers while most voters are up. If fewer than that are shown as
 * online, heartbeats are late: a leader election is under way, or a member was lost.
 */
export function isJudgeable({ hosts }: Fleet): boolean {
  const voters = hosts.filter(({ isVoter }) => isVoter);
  const online = voters.filter(({ isOnline }) => isOnline);
  return online.length > 0 && online.length * 2 > voters.length;
}

export function normalPci(address: string): string {
  return /^[0-9a-f]{2}:/i.test(address) ? `0000:${address.toLowerCase()}` : address.toLowerCase();
}

/** The file of its host that a pool is in, if Incus made one for it. */
interface PoolFile {
  /** Bytes that the file may still take from its file system. 0 if it is preallocated. */
  sparseBytes: number;
  /** Free bytes of its file system. */
  freeBytes: number;
}

/** A storage pool on one member. */
export interface Pool {
  driver: string;
  /** `Created` if Incus has set it up. */
  status: string;
  /** Bytes for machines and volumes, used or not. */
  bytes: number;
  /** Why nothing can be written there now, such as `read-only`. */
  problem?: string | undefined;
  /** The path of its file. */
  path?: string | undefined;
  /** Undefined if the pool has no file, or the file is not on this machine or cannot be read. */
  file?: PoolFile | undefined;
  config: Readonly<Record<string, string>>;
}

/** Storage drivers that keep all machines in one file system, which the kernel may make read-only. */
const IN_ONE_FILE_SYSTEM: ReadonlySet<string> = new Set(['btrfs', 'dir']);
const LOOP_FILE = /\/disks\/[^/]+\.img$/;
/** The volume of the trial write. It has no mark of Berth. */
const TRIAL = 'berth-trial-write';
/** An empty volume takes only metadata, for which a full pool may have room. Compression hardly shrinks random bytes. */
const TRIAL_BYTES = 768 * 1024;
const TRIAL_S = 5;

/**
 * Reads a pool, with the space below it. Incus does not report a pool that is full or read-only: it is found by making
 * and removing a volume.
 *
 * @throws as {@link IncusApi}
 */
export async function readPool(
  api: IncusApi,
  name: string,
  member: string | undefined,
  readFile = readPoolFile,
): Promise<Pool> {
  const { driver, status, config, bytes } = await api.pool(name, member);
  const source = config['source'] ?? '';
  const path = LOOP_FILE.test(source) ? source : undefined;
  const file = path !== undefined && api.client.isLocal ? await readFile(path) : undefined;
  const isTried = status === 'Created' && IN_ONE_FILE_SYSTEM.has(driver);
  const problem = isTried ? await tryWrite(api, name, member) : undefined;
  const short = file === undefined ? 0 : Math.max(0, file.sparseBytes - file.freeBytes);
  return {
    ...{ driver, status, config, path, file, problem },
    bytes: problem === undefined ? Math.max(0, bytes - short) : 0,
  };
}

async function readPoolFile(path: string): Promise<PoolFile | undefined> {
  try {
    const [{ size, blocks }, { bavail, bsize }] = await Promise.all([stat(path), statfs(dirname(path))]);
    return { sparseBytes: Math.max(0, size - blocks * 512), freeBytes: bavail * bsize };
  } catch {
    return undefined;
  }
}

async function tryWrite(
  { client }: IncusApi,
  pool: string,
  member: string | undefined,
): Promise<string | undefined> {
  const path = `/1.0/storage-pools/${pool}/volumes/custom`;
  const query = targetOf(member);
  const headers = { 'X-Incus-name': TRIAL, 'X-Incus-type': 'iso' };
  try {
    const { operation } = await client.send('POST', path, {
      query,
      content: { text: randomBytes(TRIAL_BYTES).toString('base64'), headers },
    });
    const { metadata } = await client.get(`/1.0/operations/${operation}/wait`, { timeout: String(TRIAL_S) });
    const problem = whyUnwritable((metadata as { err?: string }).err ?? '');
    if (problem !== undefined) return problem;
  } catch (error) {
    const problem = error instanceof IncusRefusal ? whyUnwritable(error.message) : undefined;
    if (problem !== undefined) return problem;
  }
  await client.send('DELETE', `${path}/${TRIAL}`, { query, trialVolume: true }).catch(() => undefined);
  return undefined;
}

function whyUnwritable(message: string): string | undefined {
  if (/read-only file system/i.test(message)) return 'read-only';
  if (/input\/output error/i.test(message)) return 'broken (input/output error)';
  return /no space left|disk quota exceeded/i.test(message) ? 'full' : undefined;
}
