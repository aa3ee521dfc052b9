import { type Orchestrator, startOrchestrator } from '../../../src/compose/orchestrator.ts';
import type { Config } from '../../../src/config/schema.ts';
import type { PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Store } from '../../../src/orchestrator/model/store.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { Log } from '../../../src/ports/log.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { Replica, type ReplicaWorld } from '../../kernel/replica.ts';
import { catalog } from '../catalog.ts';
import { emptyDriver, type Reach, simulatedDriver } from '../platform/driver.ts';
import type { SimulatedSsh } from '../platform/ssh.ts';
import { CommitFeed } from './commit-feed.ts';
import type { Database } from './database.ts';
import { noTrouble, replicaStore, type StoreObserver, type StoreTrouble } from './store.ts';

/** What an orchestrator uses of the world. */
export interface OrchestratorWorld extends ReplicaWorld, Reach {
  readonly chance: Chance;
  readonly scenario: { readonly replicas: number; readonly trouble: StoreTrouble };
  readonly database: Database;
  readonly ssh: SimulatedSsh;
  readonly inspector: StoreObserver;
}

/** One of the orchestrators. */
export class OrchestratorReplica extends Replica<
  { orchestrator: Orchestrator; store: Store },
  OrchestratorWorld
> {
  readonly #config: Config;
  #platform: string;
  #feed: CommitFeed | undefined;
  #clock: Clock | undefined;

  constructor(name: string, world: OrchestratorWorld, config: Config) {
    super(name, world);
    this.#config = config;
    this.#platform = world.traits.manifest.name;
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
  override start(platform = this.world.traits.manifest.name): void {
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
    const orchestrator = await startOrchestrator({
      config: this.#config,
      catalog,
      store,
      environmentKey: undefined,
      drivers: new Map([['default', this.#driver(process)]]),
      probe: this.world.ssh.of(process),
      clock,
      random: chance.fork('random'),
      log: this.log(process),
      failpoint: (point) => this.#failpoint(process, chance, point),
    });
    return { orchestrator, store };
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
    if (process !== undefined) this.world.network.died(process);
  }

  /** The driver of the platform that it is configured for; on another platform nothing is there. */
  #driver(process: ServerProcess): PlatformDriver {
    const driver = simulatedDriver(this.world, process);
    const { manifest } = driver;
    return this.#platform === manifest.name
      ? driver
      : { ...emptyDriver, manifest: { ...manifest, name: this.#platform } };
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
