import type { MarketplaceDeps } from '../../src/compose/marketplace/marketplace.ts';
import { Chance } from '../kernel/chance.ts';
import type { ServerProcess } from '../kernel/process.ts';
import type { Plant } from '../kernel/replica.ts';
import { BaseWorld } from '../runner/world.ts';
import type { MarketPrepared } from './accounts.ts';
import { MarketInspector } from './invariants/inspector.ts';
import { profiles } from './providers/profiles.ts';
import { SimulatedProvider } from './providers/simulated-provider.ts';
import { MarketDatabase } from './replicas/database.ts';
import { MarketReplica } from './replicas/replica.ts';
import { drawMarketScenario, type MarketScenario } from './scenario.ts';
import { Users } from './workload/users.ts';

export type MarketPlant = Plant<MarketplaceDeps, MarketWorld>;

/** One run: marketplaces, their database, their providers and their users, in virtual time, made from one seed. */
export class MarketWorld extends BaseWorld {
  readonly chance: Chance;
  readonly scenario: MarketScenario;
  readonly providers: readonly SimulatedProvider[];
  readonly database: MarketDatabase;
  readonly inspector: MarketInspector;
  readonly replicas: readonly MarketReplica[];
  readonly users: Users;
  /** Calls of the servers to the providers. */
  calls = 0;
  /** How many of these calls met each fault. */
  readonly faultCounts = new Map<string, number>();
  /** How far the time that a server read was off at most. */
  clockErrorMs = 0;

  readonly #plant: MarketPlant | undefined;

  constructor(seed: string, prepared: MarketPrepared, plant?: MarketPlant) {
    super();
    this.#plant = plant;
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

  plant(ports: MarketplaceDeps, process: ServerProcess): MarketplaceDeps {
    return this.#plant?.(ports, this, process) ?? ports;
  }
}
