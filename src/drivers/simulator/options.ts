import { z } from 'zod';
import { createSeededRandom } from '../kit/seeded-random.ts';

type Range = [min: number, max: number];

const range = z
  .tuple([z.number().nonnegative(), z.number().nonnegative()])
  .refine(([min, max]) => min <= max, 'expected [min, max] with min <= max');
const rate = z.number().min(0).max(1);

/** What an operator writes under `platform:` in berth.yaml. Each `…_ms` is a range to draw from. */
export const simulatorConfigSchema = z.strictObject({
  driver: z.literal('simulator').default('simulator'),
  /**
   * Where a `berth simulator` answers. Absent: the simulator runs inside `berth serve`. With it the machines are that
   * process's, and of the settings below only `attach_volume` is read by `berth serve`.
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
  /** Whether volumes go on and off while the machine runs, or only while it is stopped. */
  attach_volume: z.enum(['hot', 'cold']).default('hot'),
  /** The platform reaps a machine that has been stopped for so long. Absent: never. */
  reap_stopped_after_s: z.number().nonnegative().optional(),
  /** The platform reclaims a machine of a spot offer so long after a boot. Absent: never. */
  reclaim_spot_after_s: range.optional(),
  /** How often a first boot ends in a failed machine. */
  boot_failure_rate: rate.default(0),
  /** How often a machine boots, but its SSH never listens. */
  ssh_never_up_rate: rate.default(0),
});
export type SimulatorConfig = z.infer<typeof simulatorConfigSchema>;

/** Units of one offer that one datacenter holds. */
export interface SimulatedCapacity {
  offerId: string;
  datacenter: string;
  units: number;
  /** Whether the platform may reclaim machines of this offer. */
  spot: boolean;
}

export interface SimulatorOptions {
  /** The SQLite file that the platform's state lives in, or `:memory:`. */
  stateFile: string;
  /** Read at each use. */
  readonly capacity: readonly SimulatedCapacity[];
  /** Where the machines' SSH servers listen, and their public address. Default `127.0.0.1`. */
  host?: string;
  platform?: z.input<typeof simulatorConfigSchema>;
}

/** Draws that depend on the seed and their name only, so that neither order nor a restart changes them. */
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
