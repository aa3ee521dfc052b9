import { Scheduler, START_AT } from '../../testing/scheduler.ts';
import { Chance } from '../kernel/chance.ts';
import { Journal } from '../kernel/journal.ts';
import { emptyTally, type Tally } from '../kernel/tally.ts';
import type { MarketPrepared } from './accounts.ts';
import { MarketInspector } from './invariants/inspector.ts';
import { profiles } from './providers/profiles.ts';
import { SimulatedProvider } from './providers/simulated-provider.ts';
import { MarketDatabase } from './replicas/database.ts';
import { MarketReplica } from './replicas/replica.ts';
import { drawMarketScenario, type MarketScenario } from './scenario.ts';
import { Users } from './workload/users.ts';

/** One run: marketplaces, their database, their providers and their users, in virtual time, made from one seed. */
export class MarketWorld {
  readonly chance: Chance;
  readonly scenario: MarketScenario;
  readonly scheduler = new Scheduler(START_AT);
  readonly journal = new Journal(() => this.scheduler.now);
  readonly providers: readonly SimulatedProvider[];
  readonly database: MarketDatabase;
  readonly inspector: MarketInspector;
  readonly replicas: readonly MarketReplica[];
  readonly users: Users;
  /** Calls of the servers to the providers. */
  calls = 0;
  /** How many of these calls met each fault. */
  readonly faultCounts = new Map<string, number>();
  readonly tally: Tally = emptyTally();
  /** How far the time that a server read was off at most. */
  clockErrorMs = 0;
  /** Requests name what their answers told; faults name none. */
  readonly resources = [];
  /** From now on no fault happens. */
  isCalm = false;
  isOver = false;
  #failure: { error: unknown } | undefined;

  constructor(seed: string, prepared: MarketPrepared) {
    this.chance = new Chance(`market/${seed}`);
    this.scenario = drawMarketScenario(this.chance.fork('scenario'));
    const { chance, scheduler, scenario } = this;
    this.providers = profiles.map(
      (profile) => new SimulatedProvider(scheduler, profile, chance.fork(profile.id), scenario),
    );
    this.database = new MarketDatabase(
      prepared.folder,
      prepared.database,
      scenario.replicas === 1 ? scheduler : undefined,
    );
    this.inspector = new MarketInspector(this);
    this.users = new Users(this, prepared.users);
    this.replicas = Array.from(
      { length: scenario.replicas },
      (_, index) => new MarketReplica(`m${index + 1}`, this),
    );
  }

  provider(id: string): SimulatedProvider {
    const provider = this.providers.find((candidate) => candidate.id === id);
    if (provider === undefined) throw new Error(`there is no provider ${id}`);
    return provider;
  }

  /** Ends the run with an error that no caller waits for. */
  fail(error: unknown): void {
    this.#failure ??= { error };
  }

  /** @throws the error that was given to {@link fail} */
  assertSound(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}
