import { readFileSync } from 'node:fs';
import {
  type Marketplace,
  type MarketplaceDeps,
  startMarketplace,
} from '../../../src/compose/marketplace/marketplace.ts';
import type { Mailer } from '../../../src/marketplace/mail/mailer.ts';
import { defaultRateLimits } from '../../../src/marketplace/model/options.ts';
import { parseGpuTypes } from '../../../src/marketplace/providers/gpu-types.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { StoreUnavailable } from '../../../src/ports/errors.ts';
import type { Log } from '../../../src/ports/log.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { Replica } from '../../kernel/replica.ts';
import { Violation } from '../../kernel/violation.ts';
import { marketClient } from '../providers/client.ts';
import type { MarketBase } from '../providers/market-base.ts';
import { marketProbe } from '../providers/ssh.ts';
import { noTrouble } from '../scenario.ts';
import { marketStore, type Written } from './store.ts';

const gpuTypes = parseGpuTypes(
  readFileSync(new URL('../../../fixtures/gpu-types.yaml', import.meta.url), 'utf8'),
);
const PLENTY = 1_000_000;

type ReplicaWorld = MarketBase & {
  readonly inspector: { committed(process: ServerProcess, written: Written): void };
};

/** One of the marketplace's servers. Its clock is right again when a process starts, but for a constant error. */
export class MarketReplica extends Replica<{ marketplace: Marketplace }, ReplicaWorld> {
  readonly #skewMs: number;

  constructor(name: string, world: ReplicaWorld) {
    super(name, world);
    const { skewMs } = world.scenario;
    this.#skewMs = skewMs === 0 ? 0 : this.chance.whole(-skewMs, skewMs);
  }

  protected override async compose(process: ServerProcess, chance: Chance) {
    const { scheduler, database, scenario, inspector, providers } = this.world;
    this.clockOffsetMs = 0;
    const ports: MarketplaceDeps = {
      store: marketStore({
        store: database.store,
        scheduler,
        process,
        chance: chance.fork('store'),
        trouble: () => (this.world.isCalm ? noTrouble : scenario.trouble),
        die: () => this.crash('in a transaction'),
        pause: () => this.pause(chance),
        committed: (written) => inspector.committed(process, written),
      }),
      clock: this.#clockOf(process),
      random: chance.fork('random'),
      log: this.log(process),
      options: scenario.options,
      gpuTypes,
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
        client: marketClient(this.world, provider, process, chance.fork(provider.id), () => {
          const { pause } = this.world.isCalm ? noTrouble : scenario.trouble;
          if (chance.happens(pause)) this.pause(chance);
        }),
        sshProbe: marketProbe(this.world, provider, process, chance.fork(`${provider.id}/ssh`)),
      })),
      mailer: this.#mailer(process, chance.fork('mail')),
    };
    return { marketplace: await startMarketplace(this.world.plant(ports, process)) };
  }

  #clockOf(process: ServerProcess): Clock {
    const clock = process.clock(() => this.#skewMs + this.clockOffsetMs);
    const { world } = this;
    return {
      ...clock,
      now: () => {
        const now = clock.now();
        world.clockErrorMs = Math.max(world.clockErrorMs, Math.abs(now - Math.floor(world.scheduler.now)));
        return now;
      },
    };
  }

  protected override restartMs(): number {
    return this.chance.whole(500, 60_000);
  }

  protected override pauseMs(chance: Chance): number {
    return chance.pick([1_000, 20_000, 45_000, 120_000, 240_000]) + chance.whole(0, 20_000);
  }

  #mailer(process: ServerProcess, chance: Chance): Mailer {
    return {
      send: ({ id, to, subject }) =>
        process.reach(async () => {
          const { scheduler, journal, inspector, isCalm } = this.world;
          await scheduler.sleep(chance.whole(5, 200));
          if (!isCalm && chance.happens(0.05)) throw new Error('the mail server does not answer');
          journal.note(process.name, `mails ${to}: ${subject}`);
          inspector.mailed(id);
        }),
      close: () => undefined,
    };
  }

  /** An error in the log ends the run, unless a simulated fault caused it. */
  protected override log(process: ServerProcess): Log {
    const log = super.log(process);
    return {
      ...log,
      error: (fields, message) => {
        if (process.isDead) return;
        log.error(fields, message);
        const { err } = fields as { err?: unknown };
        if (!(err instanceof Error) || err instanceof StoreUnavailable) return;
        if (/simulated|MailRefused|mail server|ApiError/.test(`${err.name} ${err.message}`)) return;
        this.world.fail(new Violation('crash', `${process.name}: ${message}: ${err.stack ?? err.message}`));
      },
    };
  }
}
