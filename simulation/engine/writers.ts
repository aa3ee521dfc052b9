import type { InstanceRecord } from '../../src/orchestrator/model/records.ts';
import type { Chance } from '../kernel/chance.ts';
import type { OrchestratorWorld } from '../orchestrator/replicas/replica.ts';
import { type Disk, type Engine, isOf } from './engine.ts';
import type { EngineInspector } from './invariants/inspector.ts';

type WritersWorld = OrchestratorWorld & {
  readonly engine: Engine;
  readonly inspector: Pick<EngineInspector, 'history' | 'wrote'>;
  readonly scenario: { readonly writes: number };
};

/** The tenants, as users of their machines: each logs in where its instance says, and writes to its disk and volumes. */
export class Writers {
  readonly #world: WritersWorld;
  readonly #chance: Chance;
  #count = 0;

  constructor(world: WritersWorld, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
  }

  async write(): Promise<void> {
    const { inspector, scenario } = this.#world;
    if (!this.#chance.happens(scenario.writes)) return;
    const online = inspector.history.instances().filter(({ status }) => status === 'ONLINE');
    if (online.length > 0) await this.#writeTo(this.#chance.pick(online));
  }

  async #writeTo({ id, endpoint, hostKeyFingerprint }: InstanceRecord): Promise<void> {
    const { scheduler, engine, database } = this.#world;
    const found = endpoint && engine.guestAt(endpoint.publicIp, endpoint.sshPort);
    if (!found || found.readyAt > scheduler.now || found.guest.hostKey !== hostKeyFingerprint) return;
    const { disk, volumes } = found.machine;
    if (disk !== undefined) this.#put(disk, id);
    for (const { volumeId, state } of await database.store.read.volumes.attachmentsOfInstance(id)) {
      const volume = volumes.find(({ ref }) => isOf(volumeId, ref));
      if (state === 'attached' && volume !== undefined) this.#put(volume, volumeId);
    }
  }

  #put(disk: Disk, id: string): void {
    const text = `text-${++this.#count}`;
    this.#world.inspector.wrote(text, id);
    this.#world.engine.write(disk, text);
  }
}
