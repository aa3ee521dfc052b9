import {
  type Orchestrator,
  type OrchestratorDeps,
  startOrchestrator,
} from '../../../src/compose/orchestrator/orchestrator.ts';
import type { Catalog } from '../../../src/orchestrator/catalog/catalog.ts';
import type { PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Store } from '../../../src/orchestrator/model/store.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { Log } from '../../../src/ports/log.ts';
import type { SshProbe } from '../../../src/ports/ssh-probe.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { Replica, type ReplicaWorld } from '../../kernel/replica.ts';
import { emptyDriver } from '../platform/driver.ts';
import { CommitFeed } from './commit-feed.ts';
import type { Database } from './database.ts';
import { noTrouble, replicaStore, type StoreObserver, type StoreTrouble } from './store.ts';

/** What all servers are started with. */
export type Settings = Required<Pick<OrchestratorDeps, 'config' | 'reconcile'>>;

/** The way of a server to a platform. */
export interface PlatformAccess {
  /** `clock`: that of the process. */
  driver(process: ServerProcess, clock: Clock): PlatformDriver;
  /** The process has ended: what it had sent is lost, or still arrives. */
  died(process: ServerProcess): void;
}

/** What an orchestrator uses of the world. */
export interface OrchestratorWorld extends ReplicaWorld {
  /** The name of the driver of all platforms. */
  readonly driverName: string;
  readonly platforms: ReadonlyMap<string, PlatformAccess>;
  /** Of a server that is started now. */
  catalogOf(replica: string): Catalog;
  /** A key of a tenant's account. */
  readonly key: string;
  readonly chance: Chance;
  readonly scenario: { readonly replicas: number; readonly trouble: StoreTrouble };
  readonly database: Database;
  readonly ssh: { of(process: ServerProcess): SshProbe };
  readonly inspector: StoreObserver;
  /** The ports of a process with the planted fault, if there is one. */
  plant(ports: OrchestratorDeps, process: ServerProcess): OrchestratorDeps;
}

/** One of the orchestrators. */
export class OrchestratorReplica extends Replica<
  { orchestrator: Orchestrator; store: Store; listOffered(id: string): Promise<string[] | undefined> },
  OrchestratorWorld
> {
  /** How far its wall clock was off at most, in milliseconds. */
  mostOffMs = 0;
  readonly #settings: Settings;
  #platform: string;
  #feed: CommitFeed | undefined;
  #clock: Clock | undefined;

  constructor(name: string, world: OrchestratorWorld, settings: Settings) {
    super(name, world);
    this.#settings = settings;
    this.#platform = world.driverName;
  }

  get feed(): CommitFeed | undefined {
    return this.#feed;
  }

  /** The name of the platform that the process was configured for. */
  get platform(): string {
    return this.#platform;
  }

  /** The time by the clock of its process; undefined: none was started. */
  get now(): number | undefined {
    return this.#clock?.now();
  }

  /** Starts a process that is configured for a platform. */
  override start(platform = this.world.driverName): void {
    this.#platform = platform;
    super.start();
  }

  protected override async compose(process: ServerProcess, chance: Chance) {
    const { scheduler, database, scenario, inspector } = this.world;
    const feed = new CommitFeed(scheduler, chance.fork('news'), process);
    const store = replicaStore({
      database,
      feed,
      process,
      chance: chance.fork('store'),
      observer: inspector,
      isShared: scenario.replicas > 1,
      trouble: () => (this.world.isCalm ? noTrouble : scenario.trouble),
      die: () => this.crash('in a transaction'),
    });
    this.#feed = feed;
    if (scenario.replicas > 1) this.clockOffsetMs = 0;
    const clock = process.clock(() => this.clockOffsetMs);
    this.#clock = clock;
    const ports: OrchestratorDeps = {
      ...this.#settings,
      catalog: this.world.catalogOf(this.name),
      store,
      environmentKey: undefined,
      drivers: new Map(
        [...this.world.platforms].map(([name, access]) => [name, this.#driver(access, process, clock)]),
      ),
      probe: this.world.ssh.of(process),
      clock,
      random: chance.fork('random'),
      log: this.log(process),
      failpoint: (point) => this.#failpoint(process, chance, point),
    };
    const orchestrator = await startOrchestrator(this.world.plant(ports, process));
    return { orchestrator, store, listOffered: (id: string) => this.#listOffered(orchestrator, id) };
  }

  protected override restartMs(): number {
    return this.chance.between(500, 40_000);
  }

  protected override pauseMs(chance: Chance, leastMs: number): number {
    return Math.max(leastMs, chance.pick([1_000, 10_000, 40_000, 300_000])) * chance.between(0.5, 1.5);
  }

  override end(): void {
    const { process } = this;
    super.end();
    this.#feed = undefined;
    if (process !== undefined) for (const access of this.world.platforms.values()) access.died(process);
  }

  /** The driver of the platform that it is configured for; on another platform nothing is there. */
  #driver(access: PlatformAccess, process: ServerProcess, clock: Clock): PlatformDriver {
    const driver = access.driver(process, clock);
    const { manifest } = driver;
    return this.#platform === manifest.name
      ? driver
      : { ...emptyDriver, manifest: { ...manifest, name: this.#platform } };
  }

  /** The regions in which it offers an offer now; undefined: the key is not valid there. */
  async #listOffered({ app }: Orchestrator, id: string): Promise<string[] | undefined> {
    const headers = { Authorization: `Bearer ${this.world.key}` };
    const reply = await app.request('/v1/availability', { headers });
    if (reply.status !== 200) return undefined;
    const { configurations } = (await reply.json()) as {
      configurations: { id: string; regions: string[] }[];
    };
    return configurations.find((offer) => offer.id === id)?.regions ?? [];
  }

  /** It may die anywhere in a step, and pause between the platform's answer and the write of it. */
  #failpoint(process: ServerProcess, chance: Chance, point: string): void {
    if (process.isDead || this.world.isCalm) return;
    const rate = this.world.scenario.trouble.death * 4;
    if (chance.happens(rate)) this.crash('at a failpoint');
    else if (point.endsWith(':after-call') && chance.happens(10 * rate)) this.pause(chance, 40_000);
  }

  protected override log(process: ServerProcess): Log {
    return { ...super.log(process), info: () => undefined };
  }
}
