import { z } from 'zod';
import type { MachineSpec } from '../../orchestrator/model/platform-driver.ts';
import { createSeededRandom } from '../kit/seeded-random.ts';

type Range = [min: number, max: number];

const range = z
  .tuple([z.number().nonnegative(), z.number().nonnegative()])
  .refine(([min, max]) => min <= max, 'expected [min, max] with min <= max');
const rate = z.number().min(0).max(1);

/** The keys under `platform:` in berth.yaml. Each `…_ms` is a range to draw from. */
export const simulatorConfigSchema = z.strictObject({
  driver: z.literal('simulator').default('simulator'),
  /**
   * Address of a `berth simulator`. Without it, the simulator runs inside `berth serve`. With an address, that process
   * has the machines, and `berth serve` reads only `attach_volume` of the settings below.
   */
  address: z
    .url({ protocol: /^http$/, error: 'expected an address such as http://127.0.0.1:8090' })
    .optional(),
  /** The same seed, refs and calls give the same draws. */
  seed: z.union([z.int(), z.string()]).default(1),
  boot_ms: range.default([1000, 3000]),
  stop_ms: range.default([300, 1000]),
  start_ms: range.default([1000, 2500]),
  restart_ms: range.default([1000, 2500]),
  destroy_ms: range.default([300, 1000]),
  volume_ms: range.default([100, 400]),
  /** Whether volumes can be attached while the machine runs, or only while it is stopped. */
  attach_volume: z.enum(['hot', 'cold']).default('hot'),
  /** Time after which the platform reaps a stopped machine. By default it never does. */
  reap_stopped_after_s: z.number().nonnegative().optional(),
  /** Time from a boot until the platform reclaims a machine of a spot offer. By default it never does. */
  reclaim_spot_after_s: range.optional(),
  /** Probability that a first boot fails. */
  boot_failure_rate: rate.default(0),
  /** Probability that a machine boots but its SSH server never listens. */
  ssh_never_up_rate: rate.default(0),
});
export type SimulatorConfig = z.infer<typeof simulatorConfigSchema>;

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
  platform?: z.input<typeof simulatorConfigSchema>;
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
