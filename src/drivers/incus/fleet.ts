import type { Catalog, Offer } from '../../orchestrator/catalog/catalog.ts';
import { type IncusApi, type Instance, type Member, type Resources, SINGLE, type Volume } from './api.ts';
import { IncusRefusal } from './errors.ts';
import type { InstanceReader } from './instances.ts';
import { type IncusConfig, type IncusOffer, incusOfferSchema } from './options.ts';
import { type Pool, readPool } from './pools.ts';
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
