import type { MarketplaceDeps } from '../../../src/compose/marketplace/marketplace.ts';
import type { Store } from '../../../src/marketplace/model/store.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { SharedDatabase } from '../../kernel/shared-database.ts';
import { BaseWorld } from '../../kernel/world.ts';
import type { MarketScenario } from '../scenario.ts';
import type { Machine, SimulatedProvider } from './simulated-provider.ts';

/** What the parts of a run of the marketplace use of it. */
export abstract class MarketBase extends BaseWorld {
  abstract override readonly scenario: MarketScenario;
  abstract readonly providers: readonly SimulatedProvider[];
  abstract override readonly database: SharedDatabase<Store>;
  abstract readonly inspector: {
    deletes(providerId: string, machine: Machine | undefined): void;
    mailed(id: string): void;
  };
  /** Calls of the servers to the providers. */
  calls = 0;
  readonly faultCounts = new Map<string, number>();
  /** How far the time that a server read was off at most. */
  clockErrorMs = 0;

  /** The ports of a process with the planted fault, if there is one. */
  abstract plant(ports: MarketplaceDeps, process: ServerProcess): MarketplaceDeps;

  provider(id: string): SimulatedProvider {
    const provider = this.providers.find((candidate) => candidate.id === id);
    if (provider === undefined) throw new Error(`there is no provider ${id}`);
    return provider;
  }
}
