import type { Instance, InstanceStatus } from '../../../src/contract/instance.ts';
import type { ProviderProfile } from '../../../src/marketplace/providers/profile.ts';
import { PlainProvider } from '../../../test/support/doubles/plain-provider.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import { configurations, REGIONS } from './profiles.ts';

/** The status of a machine from a moment on; `gone`: nothing is left of it. */
export interface Moment {
  at: number;
  status: InstanceStatus | 'gone';
}

/** One machine that was ever made. */
export interface Machine {
  id: string;
  /** The name in the request, without what the provider added. */
  wantedName: string;
  madeAt: number;
  history: Moment[];
  /** It has one short absence and one false 404 at most: two could look like a lasting loss. */
  hasBlinked: boolean;
  hasBeenDenied: boolean;
  /** Until then the provider shows a false status. */
  blinksUntil: number;
  lastPolledAt: number;
  /** How long after ONLINE its SSH answers; null: never. */
  sshAfterMs: number | null;
  /** When the first login succeeded. */
  provedAt: number | null;
}

/** The true state of a provider. */
export class SimulatedProvider {
  readonly id: string;
  readonly profile: ProviderProfile;
  readonly plain: PlainProvider;
  readonly machines = new Map<string, Machine>();
  /** The volume of each idempotency key. */
  readonly #volumes = new Map<string, string>();
  readonly #scheduler: Scheduler;
  readonly #chance: Chance;
  /** Until then no call reaches it. */
  outageUntil = 0;
  /** Until then it answers 404 for every resource. */
  deniesUntil = 0;
  /** The machines and volumes for which it answered 404 in that time. */
  readonly denied = new Set<string>();

  constructor(
    scheduler: Scheduler,
    profile: ProviderProfile,
    chance: Chance,
    { capacity, refusesOverlap }: { capacity: number; refusesOverlap: boolean },
  ) {
    this.#scheduler = scheduler;
    this.#chance = chance.fork('machines');
    this.profile = profile;
    this.id = profile.id;
    this.plain = new PlainProvider(scheduler.clock, {
      configurations,
      volumeLocations: REGIONS.map((id) => ({ id, name: id, types: ['ssd'], country_code: 'DE' })),
      capacity,
      refusesOverlap,
      bootMs: chance.whole(5_000, 60_000),
      stopMs: chance.whole(500, 15_000),
      startMs: chance.whole(1_000, 40_000),
      deleteMs: chance.whole(500, 60_000),
      restartMs: chance.whole(5_000, 60_000),
      volumeMs: chance.pick([0, 2_000, 15_000, 50_000]),
    });
    this.#takeRequests();
  }

  /** Every machine that can still cost something, in its true state. */
  get living(): Instance[] {
    this.recordStatuses();
    return this.plain.instances;
  }

  /** Records the status changes of each machine since the last call. */
  recordStatuses(): void {
    const there = new Map(this.plain.instances.map((instance) => [instance.id, instance]));
    for (const machine of this.machines.values()) {
      const instance = there.get(machine.id);
      const last = machine.history.at(-1);
      const status = instance?.status ?? 'gone';
      if (last?.status === status) continue;
      const at = instance === undefined ? this.#scheduler.now : Date.parse(instance.updated_at);
      machine.history.push({ at, status });
    }
  }

  /** The volume that an earlier create with this idempotency key made. */
  volumeOf(key: string): string | undefined {
    return this.#volumes.get(key);
  }

  volumeMade(key: string, id: string): void {
    this.#volumes.set(key, id);
  }

  #takeRequests(): void {
    const create = this.plain.create.bind(this.plain);
    this.plain.create = (request) => {
      const made = create(request);
      this.machines.set(made.id, {
        id: made.id,
        wantedName: request.name ?? '',
        madeAt: this.#scheduler.now,
        history: [{ at: this.#scheduler.now, status: made.status }],
        hasBlinked: false,
        hasBeenDenied: false,
        blinksUntil: 0,
        lastPolledAt: this.#scheduler.now,
        sshAfterMs: this.#chance.pick([0, 0, 0, 0, 1_000, 25_000, 90_000, null]),
        provedAt: null,
      });
      return made;
    };
  }
}
