import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import type { Chance } from '../kernel/chance.ts';
import type { OrchestratorReplica, OrchestratorWorld } from '../orchestrator/replicas/replica.ts';
import { catalog, otherCatalog } from './catalog.ts';

type RolloutsWorld = OrchestratorWorld & {
  readonly scenario: { readonly newCatalog: number; readonly upgrade: number };
};

/** For how long a server of the older version may be forgotten. */
const FORGOTTEN_MS = 600_000;

/** Servers get another catalog or another version one by one, so that for a while they differ. */
export class Rollouts {
  readonly #world: RolloutsWorld;
  readonly #chance: Chance;
  readonly #hasOther = new Set<string>();
  readonly #toUpgrade = new Set<() => void>();

  constructor(world: RolloutsWorld, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
  }

  /** What a server that is started now sells. */
  catalogOf(replica: string): Catalog {
    return this.#hasOther.has(replica) ? otherCatalog : catalog;
  }

  act(): void {
    const { scenario, replicas } = this.#world;
    const chance = this.#chance;
    if (chance.happens(scenario.newCatalog)) this.#changeCatalog(chance.pick(replicas));
    if (chance.happens(scenario.upgrade)) this.#upgrade(chance.pick(replicas));
  }

  /** An operator has seen that a server is not ready: all are upgraded. */
  rest(): void {
    for (const upgrade of this.#toUpgrade) upgrade();
  }

  #changeCatalog(replica: OrchestratorReplica): void {
    if (!this.#hasOther.delete(replica.name)) this.#hasOther.add(replica.name);
    replica.crash('to be started with another catalog');
  }

  /** One server migrates the tables. The others go on with the older version until somebody remembers them. */
  #upgrade(first: OrchestratorReplica): void {
    const { scheduler, journal, database, replicas } = this.#world;
    first.crash('to be started in a newer version');
    journal.note('database', 'is migrated');
    database.schemaVersion++;
    for (const replica of replicas) {
      const { process } = replica;
      if (replica === first || process === undefined) continue;
      const upgrade = (): void => {
        if (this.#toUpgrade.delete(upgrade) && replica.process === process)
          replica.crash('to be started in the newer version');
      };
      this.#toUpgrade.add(upgrade);
      scheduler.after(this.#chance.between(0, FORGOTTEN_MS), upgrade);
    }
  }
}
