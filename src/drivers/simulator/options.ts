import { z } from 'zod';
import type { MachineSpec } from '../../orchestrator/model/platform-driver.ts';
import { createSeededRandom } from '../kit/seeded-random.ts';

type Range = readonly [min: number, max: number];

/** The keys under `platform:` in berth.yaml. */
export const simulatorConfigSchema = z.strictObject({
  driver: z.literal('simulator').default('simulator'),
  /** Address of a `berth simulator`. Without it, the simulator runs inside `berth serve`. */
  address: z
    .url({ protocol: /^http$/, error: 'expected an address such as http://127.0.0.1:8090' })
    .optional(),
});
export type SimulatorConfig = z.infer<typeof simulatorConfigSchema>;

/** How the simulated platform behaves. Each `…Ms` is a range to draw from. */
export interface SimulatorBehavior {
  /** The same seed, refs and calls give the same draws. */
  seed: string | number;
  bootMs: Range;
  stopMs: Range;
  startMs: Range;
  restartMs: Range;
  destroyMs: Range;
  volumeMs: Range;
  /** Whether volumes can be attached while the machine runs, or only while it is stopped. */
  attachVolume: 'hot' | 'cold';
  /** Time after which the platform reaps a stopped machine. By default it never does. */
  reapStoppedAfterS?: number;
  /** Time from a boot until the platform reclaims a machine of a spot offer. By default it never does. */
  reclaimSpotAfterS?: Range;
  /** Probability that a first boot fails. */
  bootFailureRate: number;
  /** Probability that a machine boots but its SSH server never listens. */
  sshNeverUpRate: number;
}

/** The behavior of the bundled simulator. */
export const defaultBehavior: SimulatorBehavior = {
  seed: 1,
  bootMs: [1000, 3000],
  stopMs: [300, 1000],
  startMs: [1000, 2500],
  restartMs: [1000, 2500],
  destroyMs: [300, 1000],
  volumeMs: [100, 400],
  attachVolume: 'hot',
  bootFailureRate: 0,
  sshNeverUpRate: 0,
};

type Size = Pick<MachineSpec, 'vcpus' | 'memoryGb' | 'rootDiskGb' | 'gpuCount' | 'gpuType'>;

export interface SimulatedCapacity {
  offerId: string;
  datacenter: string;
  units: number;
  /** Whether the platform may reclaim machines of this offer. */
  spot: boolean;
  /** What one unit takes of a host at most. Absent: unknown, and each unit has a host of its own. */
  size?: Size;
}

export interface SimulatorOptions {
  /** The SQLite file with the platform's state, or `:memory:`. */
  stateFile: string;
  /** The capacity. It is read at each use. */
  readonly capacity: readonly SimulatedCapacity[];
  /** What differs from {@link defaultBehavior}. */
  platform?: Partial<SimulatorBehavior>;
}

/** Draws that depend only on the seed and their name, so that neither order nor a restart changes them. */
export class Draws {
  readonly #seed: string;

  constructor(seed: string | number) {
    this.#seed = String(seed);
  }

  /** A whole number of milliseconds in `range`. */
  durationMs(name: string, [min, max]: Range): number {
    return Math.round(min + this.#fraction(name) * (max - min));
  }

  happens(name: string, rate: number): boolean {
    return this.#fraction(name) < rate;
  }

  #fraction(name: string): number {
    return createSeededRandom(`${this.#seed}/${name}`).next();
  }
}
