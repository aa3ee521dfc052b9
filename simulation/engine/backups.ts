import type { Chance } from '../kernel/chance.ts';
import type { OrchestratorWorld } from '../orchestrator/replicas/replica.ts';
import type { Clients } from '../orchestrator/workload/clients.ts';
import type { EngineInspector } from './invariants/inspector.ts';

type BackupsWorld = OrchestratorWorld & {
  readonly inspector: Pick<EngineInspector, 'wentBack'>;
  readonly clients: Clients;
  readonly scenario: { readonly failOver: number; readonly restore: number };
};

const KEPT = 6;
const COPIES = 0.2;
/** A replica that takes over is no further behind. */
const BEHIND_MS = 60_000;

/** Copies of the database, and what goes back to one: a fail-over that loses commits, and a backup that is restored. */
export class Backups {
  readonly #world: BackupsWorld;
  readonly #chance: Chance;
  readonly #copies: { path: string; takenAt: number }[] = [];

  constructor(world: BackupsWorld, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
  }

  async act(): Promise<void> {
    const { scenario, scheduler, database } = this.#world;
    const chance = this.#chance;
    if (scenario.failOver + scenario.restore === 0) return;
    if (chance.happens(COPIES)) {
      this.#copies.push({ path: await database.copy(), takenAt: Math.floor(scheduler.now) });
      this.#copies.splice(0, this.#copies.length - KEPT);
    }
    const newest = this.#copies.at(-1);
    if (newest !== undefined && chance.happens(scenario.failOver)) {
      if (scheduler.now - newest.takenAt < BEHIND_MS) await this.#goBack(newest, false);
    } else if (this.#copies.length > 0 && chance.happens(scenario.restore))
      await this.#goBack(chance.pick(this.#copies), true);
  }

  /** `isRestore`: an operator did that, and Berth's own command has written it down. */
  async #goBack({ path, takenAt }: { path: string; takenAt: number }, isRestore: boolean): Promise<void> {
    const { scheduler, journal, database, replicas, inspector, clients } = this.#world;
    const ageS = Math.round((scheduler.now - takenAt) / 1_000);
    journal.note('database', isRestore ? `is restored from ${ageS} s ago` : `lost the commits of ${ageS} s`);
    for (const replica of replicas) replica.end();
    await scheduler.settle();
    const epoch = () => database.store.read.marks.get('writer_epoch');
    const drawn = await epoch();
    await database.goBack(path);
    database.writer = null;
    // Servers that do not find their last epoch stop, with an alarm that asks an operator for this.
    if (isRestore || (await epoch()) !== drawn)
      await database.transact((tx) => tx.marks.put('restored_from', takenAt));
    this.#copies.length = 0;
    await inspector.wentBack();
    for (const tenant of clients.tenants) tenant.forget();
    for (const replica of replicas) replica.start();
  }
}
