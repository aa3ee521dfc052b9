import { readFileSync } from 'node:fs';
import { type Marketplace, startMarketplace } from '../../../src/compose/marketplace.ts';
import type { Mailer } from '../../../src/marketplace/mail/mailer.ts';
import { defaultRateLimits, type MarketplaceOptions } from '../../../src/marketplace/model/options.ts';
import { parseGpuTypes } from '../../../src/marketplace/providers/gpu-types.ts';
import { StoreUnavailable } from '../../../src/ports/errors.ts';
import type { Log } from '../../../src/ports/log.ts';
import type { Chance } from '../../kernel/chance.ts';
import { describeFields } from '../../kernel/journal.ts';
import { ServerProcess } from '../../kernel/process.ts';
import type { Tally } from '../../kernel/tally.ts';
import { Violation } from '../../kernel/violation.ts';
import { marketClient, type ProviderWorld } from '../providers/client.ts';
import type { SimulatedProvider } from '../providers/simulated-provider.ts';
import { marketProbe } from '../providers/ssh.ts';
import type { MarketDatabase } from './database.ts';
import { type MarketTrouble, marketStore, noTrouble, type Written } from './store.ts';

const gpuTypes = parseGpuTypes(
  readFileSync(new URL('../../../fixtures/gpu-types.yaml', import.meta.url), 'utf8'),
);
const PLENTY = 1_000_000;

/** What a replica uses of the world. */
export interface ReplicaWorld extends ProviderWorld {
  readonly chance: Chance;
  readonly scenario: ProviderWorld['scenario'] & {
    readonly skewMs: number;
    readonly trouble: MarketTrouble;
    readonly options: MarketplaceOptions;
  };
  readonly database: MarketDatabase;
  readonly providers: readonly SimulatedProvider[];
  readonly inspector: { committed(process: ServerProcess, written: Written): void; mailed(id: string): void };
  readonly tally: Tally;
  readonly isOver: boolean;
  /** Ends the run with an error that no caller waits for. */
  fail(error: unknown): void;
}

/** One of the marketplace's servers: at most one process at a time. */
export class MarketReplica {
  readonly name: string;
  /** By how much its clock was set wrong; it is right again when a process starts. */
  clockOffsetMs = 0;
  readonly #world: ReplicaWorld;
  readonly #chance: Chance;
  /** The constant error of its clock. */
  readonly #skewMs: number;
  #processes = 0;
  #process: ServerProcess | undefined;
  #marketplace: Marketplace | undefined;

  constructor(name: string, world: ReplicaWorld) {
    this.name = name;
    this.#world = world;
    this.#chance = world.chance.fork(name);
    const { skewMs } = world.scenario;
    this.#skewMs = skewMs === 0 ? 0 : this.#chance.whole(-skewMs, skewMs);
  }

  get process(): ServerProcess | undefined {
    return this.#process;
  }

  /** The process and its marketplace; undefined while none serves requests. */
  get serving(): { process: ServerProcess; marketplace: Marketplace } | undefined {
    const [process, marketplace] = [this.#process, this.#marketplace];
    return process === undefined || marketplace === undefined ? undefined : { process, marketplace };
  }

  /** Starts a process. One that fails to start ends, and another is started. */
  start(): void {
    const { scheduler, journal, database, scenario, inspector, providers } = this.#world;
    const process = new ServerProcess(`${this.name}.${++this.#processes}`, scheduler);
    const chance = this.#chance.fork(String(this.#processes));
    this.#process = process;
    this.clockOffsetMs = 0;
    journal.note(process.name, 'starts');
    startMarketplace({
      store: marketStore({
        store: database.store,
        scheduler,
        process,
        chance: chance.fork('store'),
        trouble: () => (this.#world.isCalm ? noTrouble : scenario.trouble),
        die: () => this.crash('in a transaction'),
        committed: (written) => inspector.committed(process, written),
      }),
      clock: process.clock(() => this.#skewMs + this.clockOffsetMs),
      random: chance.fork('random'),
      log: this.#log(process),
      options: scenario.options,
      gpuTypes,
      maxBodyBytes: 1_048_576,
      trustedProxies: 0,
      rateLimits: {
        ...defaultRateLimits,
        catalogReads: PLENTY,
        accountRequests: PLENTY,
        creates: PLENTY,
        otherRequests: PLENTY,
      },
      providers: providers.map((provider) => ({
        profile: provider.profile,
        client: marketClient(this.#world, provider, process, chance.fork(provider.id)),
        sshProbe: marketProbe(this.#world, provider, process, chance.fork(`${provider.id}/ssh`)),
      })),
      mailer: this.#mailer(process, chance.fork('mail')),
    }).then(
      (marketplace) => {
        if (process.isDead) return;
        this.#marketplace = marketplace;
        journal.note(process.name, 'serves');
      },
      (error: unknown) => {
        if (!process.isDead) this.crash(`could not start: ${error instanceof Error ? error.message : error}`);
      },
    );
  }

  /** Kills the process; another is started after a while. */
  crash(why: string): void {
    const process = this.#process;
    if (process === undefined || process.isDead) return;
    const { journal, tally, scheduler } = this.#world;
    journal.note(process.name, `dies ${why}`);
    tally.crashes++;
    this.end();
    const delayMs = this.#world.isCalm ? 1_000 : this.#chance.whole(500, 60_000);
    scheduler.after(delayMs, () => {
      if (this.#process === undefined && !this.#world.isOver) this.start();
    });
  }

  /** Pauses the process for a while, as a SIGSTOP does; its leases may run out. */
  pause(chance: Chance): void {
    const process = this.#process;
    if (process === undefined || process.isPaused) return;
    const { scheduler, journal, tally } = this.#world;
    const ms = chance.pick([1_000, 20_000, 45_000, 120_000]) + chance.whole(0, 20_000);
    journal.note(process.name, `is paused for ${ms} ms`);
    tally.pauses++;
    process.pause();
    scheduler.after(ms, () => {
      if (!process.isDead) journal.note(process.name, 'goes on');
      process.resume();
    });
  }

  /** Kills the process, and starts no other. */
  end(): void {
    this.#process?.kill();
    this.#process = undefined;
    this.#marketplace = undefined;
  }

  #mailer(process: ServerProcess, chance: Chance): Mailer {
    return {
      send: ({ id, to, subject }) =>
        process.reach(async () => {
          const { scheduler, journal, inspector, isCalm } = this.#world;
          await scheduler.sleep(chance.whole(5, 200));
          if (!isCalm && chance.happens(0.05)) throw new Error('the mail server does not answer');
          journal.note(process.name, `mails ${to}: ${subject}`);
          inspector.mailed(id);
        }),
      close: () => undefined,
    };
  }

  /** An error in the log ends the run, unless a simulated fault caused it. */
  #log(process: ServerProcess): Log {
    const write = (level: string) => (fields: object, message: string) => {
      if (process.isDead) return;
      const { err } = fields as { err?: unknown };
      this.#world.journal.note(process.name, `${level} ${message} ${describeFields(fields)}`);
      if (level !== 'error' || !(err instanceof Error) || err instanceof StoreUnavailable) return;
      if (/simulated|MailRefused|mail server|ApiError/.test(`${err.name} ${err.message}`)) return;
      this.#world.fail(new Violation('crash', `${process.name}: ${message}: ${err.stack ?? err.message}`));
    };
    return { debug: () => undefined, info: write('info'), warn: write('warn'), error: write('error') };
  }
}
