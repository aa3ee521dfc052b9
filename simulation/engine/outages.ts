import type { Scheduler } from '../../test/support/time/scheduler.ts';
import type { Chance } from '../kernel/chance.ts';
import type { Journal } from '../kernel/journal.ts';
import type { Engine } from './engine.ts';
import type { EngineScenario } from './scenario.ts';

/** `refuse`: a host refuses each create alike. */
export const outages = ['refuse'] as const;
export type Outage = (typeof outages)[number];

interface OutagesWorld {
  readonly scheduler: Scheduler;
  readonly journal: Journal;
  readonly engine: Engine;
  readonly scenario: Pick<EngineScenario, 'outage' | 'outages'>;
}

/** What goes on until a person mends it, one at a time. */
export class Outages {
  /** The host, as Berth calls it, that it befalls now. */
  host: string | undefined;
  readonly #world: OutagesWorld;
  readonly #chance: Chance;
  #mend: (() => void) | undefined;

  constructor(world: OutagesWorld, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
  }

  /** Draws whether it begins before the next command. Some are mended later, and all others by {@link mend}. */
  act(): void {
    const { scenario, engine, scheduler, journal } = this.#world;
    const chance = this.#chance;
    const { outage } = scenario;
    if (outage === undefined || this.#mend !== undefined || !chance.happens(scenario.outages)) return;
    const { name, zone = name } = chance.pick(engine.hosts);
    this.#mend = engine.hands[outage]?.(zone);
    if (this.#mend === undefined) return;
    this.host = zone;
    journal.note('engine', `${outage} begins at ${zone}`);
    if (chance.happens(0.3)) scheduler.after(chance.between(60_000, 900_000), () => this.mend());
  }

  mend(): void {
    if (this.#mend === undefined) return;
    this.#world.journal.note('a person', `mends ${this.host}`);
    this.#mend();
    this.#mend = undefined;
    this.host = undefined;
  }
}
