import { type Orchestrator, startOrchestrator } from '../../../src/compose/orchestrator.ts';
import type { Config } from '../../../src/config/schema.ts';
import type { PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Store } from '../../../src/orchestrator/model/store.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { Log } from '../../../src/ports/log.ts';
import type { Chance } from '../../kernel/chance.ts';
import { describeFields, type Journal } from '../../kernel/journal.ts';
import { ServerProcess } from '../../kernel/process.ts';
import type { Scheduler } from '../../kernel/scheduler.ts';
import type { Tally } from '../../kernel/tally.ts';
import { catalog } from '../catalog.ts';
import { emptyDriver, type Reach, simulatedDriver } from '../platform/driver.ts';
import type { SimulatedSsh } from '../platform/ssh.ts';
import { CommitFeed } from './commit-feed.ts';
import type { Database } from './database.ts';
import { noTrouble, replicaStore, type StoreObserver, type StoreTrouble } from './store.ts';

/** What a replica uses of the world. */
export interface ReplicaWorld extends Reach {
  readonly scheduler: Scheduler;
  readonly journal: Journal;
  readonly scenario: { readonly replicas: number; readonly trouble: StoreTrouble };
  readonly database: Database;
  readonly ssh: SimulatedSsh;
  readonly inspector: StoreObserver;
  readonly tally: Tally;
  readonly isCalm: boolean;
  readonly isOver: boolean;
}

/** One of the servers: at most one process at a time, with a clock of its own. */
export class Replica {
  readonly name: string;
  readonly #world: ReplicaWorld;
  readonly #chance: Chance;
  readonly #config: Config;
  #processes = 0;
  #platform = '';
  #process: ServerProcess | undefined;
  #feed: CommitFeed | undefined;
  #store: Store | undefined;
  #orchestrator: Orchestrator | undefined;
  /** How far its wall clock is off, in milliseconds. */
  clockOffsetMs = 0;
  #clock: Clock | undefined;

  constructor(name: string, world: ReplicaWorld, config: Config) {
    this.name = name;
    this.#world = world;
    this.#chance = world.chance.fork(name);
    this.#config = config;
  }

  get process(): ServerProcess | undefined {
    return this.#process;
  }

  get feed(): CommitFeed | undefined {
    return this.#feed;
  }

  /** The process and its orchestrator; undefined while none serves requests. */
  get serving(): { process: ServerProcess; orchestrator: Orchestrator; store: Store } | undefined {
    const [process, orchestrator, store] = [this.#process, this.#orchestrator, this.#store];
    return process === undefined || orchestrator === undefined || store === undefined
      ? undefined
      : { process, orchestrator, store };
  }

  /** The name of the platform that the process was configured for. */
  get platform(): string {
    return this.#platform;
  }

  /** The time by the clock of its process; undefined: none was started. */
  get now(): number | undefined {
    return this.#clock?.now();
  }

  /** Starts a process. One that fails to start ends, and another is started. */
  start(platform = this.#world.traits.manifest.name): void {
    this.#platform = platform;
    const { scheduler, journal, database, scenario, inspector } = this.#world;
    const process = new ServerProcess(`${this.name}.${++this.#processes}`, scheduler);
    const chance = this.#chance.fork(String(this.#processes));
    const feed = new CommitFeed(scheduler, chance.fork('news'), process);
    const store = replicaStore({
      database,
      feed,
      process,
      chance: chance.fork('store'),
      observer: inspector,
      isShared: scenario.replicas > 1,
      trouble: () => (this.#world.isCalm ? noTrouble : scenario.trouble),
      die: () => this.crash('in a transaction'),
    });
    [this.#process, this.#feed, this.#store] = [process, feed, store];
    if (scenario.replicas > 1) this.clockOffsetMs = 0;
    journal.note(process.name, 'starts');
    const clock = process.clock(() => this.clockOffsetMs);
    this.#clock = clock;
    startOrchestrator({
      config: this.#config,
      catalog,
      store,
      environmentKey: undefined,
      driver: this.#driver(process),
      probe: this.#world.ssh.of(process),
      clock,
      random: chance.fork('random'),
      log: this.#log(process),
      failpoint: (point) => this.#failpoint(process, chance, point),
    }).then(
      (orchestrator) => {
        if (process.isDead) return;
        this.#orchestrator = orchestrator;
        journal.note(process.name, 'serves');
      },
      (error: unknown) => {
        if (process.isDead) return;
        this.crash(`could not start: ${error instanceof Error ? error.message : String(error)}`);
      },
    );
  }

  /** Kills the process; another is started after a while. */
  crash(why: string): void {
    const process = this.#process;
    if (process === undefined || process.isDead) return;
    this.#world.journal.note(process.name, `dies ${why}`);
    this.#world.tally.crashes++;
    this.#end(process);
    const delayMs = this.#world.isCalm ? 1_000 : this.#chance.between(500, 40_000);
    this.#world.scheduler.after(delayMs, () => {
      if (this.#process === undefined && !this.#world.isOver) this.start();
    });
  }

  /** Pauses the process for a while, as a SIGSTOP does. */
  pause(chance: Chance, leastMs = 1_000): void {
    const process = this.#process;
    if (process === undefined || process.isPaused) return;
    const { scheduler, journal, tally } = this.#world;
    const ms = Math.max(leastMs, chance.pick([1_000, 10_000, 40_000, 300_000])) * chance.between(0.5, 1.5);
    journal.note(process.name, `is paused for ${Math.round(ms / 1_000)} s`);
    tally.pauses++;
    process.pause();
    scheduler.after(ms, () => {
      if (!process.isDead) journal.note(process.name, 'goes on');
      process.resume();
    });
  }

  /** Kills the process, and starts no other. */
  end(): void {
    if (this.#process !== undefined) this.#end(this.#process);
  }

  /** The driver of the platform that it is configured for; on another platform nothing is there. */
  #driver(process: ServerProcess): PlatformDriver {
    const driver = simulatedDriver(this.#world, process);
    const { manifest } = driver;
    return this.#platform === manifest.name
      ? driver
      : { ...emptyDriver, manifest: { ...manifest, name: this.#platform } };
  }

  #end(process: ServerProcess): void {
    process.kill();
    this.#world.network.died(process);
    this.#process = undefined;
    this.#feed = undefined;
    this.#orchestrator = undefined;
  }

  /** It may die anywhere in a step, and pause between the platform's answer and the write of it. */
  #failpoint(process: ServerProcess, chance: Chance, point: string): void {
    if (process.isDead || this.#world.isCalm) return;
    const rate = this.#world.scenario.trouble.death * 4;
    if (chance.happens(rate)) this.crash('at a failpoint');
    else if (point.endsWith(':after-call') && chance.happens(10 * rate)) this.pause(chance, 40_000);
  }

  #log(process: ServerProcess): Log {
    const write = (level: string) => (fields: object, message: string) => {
      if (process.isDead) return;
      this.#world.journal.note(process.name, `${level} ${message} ${describeFields(fields)}`);
    };
    return { debug: () => undefined, info: () => undefined, warn: write('warn'), error: write('error') };
  }
}
