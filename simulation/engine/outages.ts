import type { Chance } from '../kernel/chance.ts';
import { ServerProcess } from '../kernel/process.ts';
import type { OrchestratorWorld } from '../orchestrator/replicas/replica.ts';
import type { Commands } from './commands.ts';
import { type Engine, FULL, type Machine, READ_ONLY, REFUSED } from './engine.ts';
import type { EngineScenario, Outage } from './scenario.ts';

/** How often it begins, for each command of a client. */
const BEGINS = 0.05;
const REASONS = { refuse: REFUSED, full: FULL, readOnly: READ_ONLY };
/** By what name the other server writes to the platform. */
export const OTHER_SERVER = 'the other server';

type OutagesWorld = OrchestratorWorld & {
  readonly engine: Engine;
  readonly commands: Commands;
  readonly scenario: Pick<EngineScenario, 'outage'>;
};

/** What goes on until a person mends it, one at a time. */
export class Outages {
  /** At a host, as Berth calls it, of a machine, or of the platform. */
  now: { at: string; why: string; machine?: Machine; mend(): unknown } | undefined;
  since = 0;
  #until = Infinity;
  readonly #world: OutagesWorld;
  readonly #chance: Chance;

  constructor(world: OutagesWorld, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
  }

  /** Draws whether it begins before the next command. Some are mended later, and all others by {@link mend}. */
  async act(): Promise<void> {
    const { scheduler, journal } = this.#world;
    const { outage } = this.#world.scenario;
    if (scheduler.now >= this.#until) await this.mend();
    if (outage === undefined || this.now !== undefined || !this.#chance.happens(BEGINS)) return;
    this.now = this.#begin(outage);
    this.since = scheduler.now;
    const isMended = this.#chance.happens(0.3);
    this.#until = isMended ? this.since + this.#chance.between(60_000, 900_000) : Infinity;
    if (this.now !== undefined) journal.note('engine', `${outage} begins at ${this.now.at}`);
  }

  async mend(): Promise<void> {
    if (this.now === undefined) return;
    this.#world.journal.note('a person', `mends ${this.now.at}`);
    await this.now.mend();
    this.now = undefined;
  }

  #begin(outage: Outage): Outages['now'] {
    const { engine } = this.#world;
    const chance = this.#chance;
    if (outage === 'takeOver') {
      const process = new ServerProcess(OTHER_SERVER, this.#world.scheduler);
      void this.#takeOver(process);
      return { at: 'the platform', why: OTHER_SERVER, mend: () => this.#restore(process) };
    }
    if (outage === 'freeze') {
      const running = engine.machines().filter(({ power, ref }) => power === 'running' && ref !== undefined);
      if (running.length === 0) return undefined;
      const machine = chance.pick(running);
      const mend = engine.hands.freeze?.(machine, chance);
      return mend && { at: machine.host, why: outage, machine, mend };
    }
    const { name, zone: at = name } = chance.pick(engine.hosts);
    const mend = engine.hands.refuse?.(at, REASONS[outage]);
    return mend && { at, why: REASONS[outage], mend };
  }

  /** As a server does that is started with a copy. It changes nothing else. */
  async #takeOver(process: ServerProcess): Promise<void> {
    const { engine, scheduler, database } = this.#world;
    const { writer } = engine.driver(
      process,
      process.clock(() => 0),
    );
    const key = `${(await database.store.read.installation.get())?.id}-default`;
    for (let isDone = false; !isDone && !process.isDead; )
      try {
        const epoch = (lastMark((await writer?.read(key)) ?? [])?.epoch ?? 0) + 2 ** 24;
        const at = new Date(scheduler.now).toISOString();
        await writer?.write(key, JSON.stringify({ epoch, by: OTHER_SERVER, at }));
        isDone = true;
      } catch {
        await scheduler.sleep(5_000);
      }
  }

  /** The other server is ended. Those of this database are stopped, and started again after `berth restore --in-place`. */
  async #restore(other: ServerProcess): Promise<void> {
    const { scheduler, database, replicas, commands } = this.#world;
    other.kill();
    commands.died(other);
    for (const replica of replicas) replica.end();
    await scheduler.settle();
    database.writer = null;
    await database.transact((tx) => tx.marks.put('restored_from', Math.floor(scheduler.now)));
    for (const replica of replicas) replica.start();
  }
}

/** The mark with the highest epoch; undefined: there is none. */
export function lastMark(texts: readonly string[]): { epoch: number; by: string } | undefined {
  const marks = texts.filter(Boolean).map((text) => JSON.parse(text) as { epoch: number; by: string });
  return marks.toSorted((a, b) => b.epoch - a.epoch)[0];
}
