import {
  type Orchestrator,
  type OrchestratorDeps,
  startOrchestrator,
} from '../../../src/compose/orchestrator/orchestrator.ts';
import { loadConfig } from '../../../src/config/load.ts';
import type { Catalog } from '../../../src/orchestrator/catalog/catalog.ts';
import type { PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { InstanceRecord } from '../../../src/orchestrator/model/records.ts';
import type { Store } from '../../../src/orchestrator/model/store.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { Log } from '../../../src/ports/log.ts';
import type { SshProbe } from '../../../src/ports/ssh-probe.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { Replica } from '../../kernel/replica.ts';
import type { SharedDatabase } from '../../kernel/shared-database.ts';
import { nothingIsLeft } from '../../kernel/violation.ts';
import { BaseWorld } from '../../kernel/world.ts';
import { emptyDriver } from '../platform/driver.ts';
import { noTrouble, type ServerScenario } from '../scenario.ts';
import { type Commit, CommitFeed } from './commit-feed.ts';
import { Database } from './database.ts';
import { replicaStore, type StoreObserver } from './store.ts';

/** What all servers are started with. */
type Settings = Required<Pick<OrchestratorDeps, 'config' | 'reconcile'>>;

/** The way of a server to a platform. */
export interface PlatformAccess {
  /** `clock`: that of the process. */
  driver(process: ServerProcess, clock: Clock): PlatformDriver;
  /** The process has ended: what it had sent is lost, or still arrives. */
  died(process: ServerProcess): void;
}

/** A world of orchestrators, on simulated platforms or on the real drivers. */
export abstract class OrchestratorWorld extends BaseWorld {
  abstract override readonly scenario: ServerScenario;
  abstract override readonly database: Database;
  abstract override readonly replicas: readonly OrchestratorReplica[];
  abstract readonly inspector: StoreObserver & {
    instancesWritten(records: readonly InstanceRecord[]): void;
    /** The power was cut: checks that what was committed is there. */
    recovered(): Promise<void>;
  };
  abstract readonly catalog: Catalog;
  /** The name of the driver of all platforms. */
  abstract readonly driverName: string;
  abstract readonly platforms: ReadonlyMap<string, PlatformAccess>;
  /** A key of a tenant's account. */
  abstract readonly key: string;
  abstract readonly ssh: { of(process: ServerProcess): SshProbe };
  /** Commands of clients that are not finished. */
  running = 0;

  /** The ports of a process with the planted fault, if there is one. */
  abstract plant(ports: OrchestratorDeps, process: ServerProcess): OrchestratorDeps;

  /** Begins the database, and notifies the inspector and all servers of each commit. */
  protected begin(shared: SharedDatabase<Store>): Database {
    const listener = {
      instancesChanged: (instances: readonly InstanceRecord[]) => {
        this.inspector.instancesWritten(instances);
        this.#tell({ instances });
      },
      workChanged: () => this.#tell({ work: true }),
    };
    return new Database(shared, listener, {
      scheduler: this.scheduler,
      isShared: this.scenario.replicas > 1,
    });
  }

  protected makeReplicas(): OrchestratorReplica[] {
    const settings = settingsOf(this.scenario);
    return Array.from(
      { length: this.scenario.replicas },
      (_, index) => new OrchestratorReplica(`r${index + 1}`, this, settings),
    );
  }

  #tell(commit: Commit): void {
    const { writer } = this.database;
    for (const { process, feed } of this.replicas)
      if (process !== undefined && process === writer) feed?.tellNow(commit);
      else feed?.tellSoon(commit);
  }

  /** Ends the faults of the servers. */
  healReplicas(): void {
    for (const replica of this.replicas) {
      replica.clockOffsetMs = 0;
      replica.process?.resume();
      replica.feed?.heal();
    }
  }

  /** Closes the servers within `limitMs`, and checks that no timer and no subscription is left. */
  async shutDown(limitMs: number): Promise<void> {
    this.isOver = true;
    const closing = this.replicas.map(({ serving }) => serving?.orchestrator.close());
    await this.scheduler.runUntil(this.scheduler.now + limitMs);
    await Promise.all(closing);
    for (const { process, feed } of this.replicas)
      nothingIsLeft({ timers: process?.openTimers ?? 0, subscriptions: feed?.subscriptions ?? 0 });
  }
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
      catalog: this.world.catalog,
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

const LEAST_GRACE_S = 60;
const DAY_S = 24 * 3_600;

/** The settings of the servers. Their catalog comes by another way than a file. */
function settingsOf(scenario: ServerScenario): Settings {
  const { config } = loadConfig({ flags: {}, env: {} });
  const { tombstonesKeptS, heldFailuresS, disksKeptS } = scenario;
  return {
    config: {
      ...config,
      catalog: 'none',
      rate_limits: { ...config.rate_limits, enabled: false },
      retention: { tombstones_days: tombstonesKeptS / DAY_S, history_days: 30, audit_days: 365 },
      failed_instances: heldFailuresS === null ? {} : { hold_minutes: heldFailuresS / 60 },
      losses: { keep_disks_hours: disksKeptS / 3_600 },
      orphans: scenario.orphans,
    },
    reconcile: {
      leaseMs: scenario.leaseS * 1_000,
      watchIntervalMs: scenario.watchIntervalS * 1_000,
      probeIntervalMs: scenario.probeIntervalS * 1_000,
      holdLostClaimsMs: scenario.lostClaimsHeldS * 1_000,
      orphanGraceMs: LEAST_GRACE_S * 1_000,
    },
  };
}
