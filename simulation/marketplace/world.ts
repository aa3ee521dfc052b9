import type { MarketplaceDeps } from '../../src/compose/marketplace/marketplace.ts';
import type { Store } from '../../src/marketplace/model/store.ts';
import { Chance } from '../kernel/chance.ts';
import type { ServerProcess } from '../kernel/process.ts';
import type { Plant } from '../kernel/replica.ts';
import type { SharedDatabase } from '../kernel/shared-database.ts';
import type { MarketUser } from './accounts.ts';
import { MarketInspector } from './invariants/inspector.ts';
import { MarketBase } from './providers/market-base.ts';
import { profiles } from './providers/profiles.ts';
import { SimulatedProvider } from './providers/simulated-provider.ts';
import { MarketReplica } from './replicas/replica.ts';
import { drawMarketScenario, type MarketScenario } from './scenario.ts';
import { Users } from './workload/users.ts';

export type MarketPlant = Plant<MarketplaceDeps, MarketWorld>;

/** One run: marketplaces, their database, their providers and their users, in virtual time, made from one seed. */
export class MarketWorld extends MarketBase {
  readonly chance: Chance;
  readonly scenario: MarketScenario;
  readonly providers: readonly SimulatedProvider[];
  readonly database: SharedDatabase<Store>;
  readonly inspector: MarketInspector;
  readonly replicas: readonly MarketReplica[];
  readonly users: Users;
  readonly #plant: MarketPlant | undefined;

  constructor(
    seed: string,
    { database, users }: { database: SharedDatabase<Store>; users: readonly MarketUser[] },
    plant?: MarketPlant,
  ) {
    super();
    this.#plant = plant;
    this.chance = new Chance(`market/${seed}`);
    this.scenario = drawMarketScenario(this.chance.fork('scenario'));
    const { chance, scheduler, scenario } = this;
    this.providers = profiles.map(
      (profile) => new SimulatedProvider(scheduler, profile, chance.fork(profile.id), scenario),
    );
    this.database = database;
    database.begin({ scheduler, isShared: scenario.replicas > 1 });
    this.inspector = new MarketInspector(this);
    this.users = new Users(this, users);
    this.replicas = Array.from(
      { length: scenario.replicas },
      (_, index) => new MarketReplica(`m${index + 1}`, this),
    );
  }

  plant(ports: MarketplaceDeps, process: ServerProcess): MarketplaceDeps {
    return this.#plant?.(ports, this, process) ?? ports;
  }
}
