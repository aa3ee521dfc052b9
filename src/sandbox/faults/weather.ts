import { z } from 'zod';
import { parseSetting } from '../settings.ts';
import { type FaultName, faultNames } from './catalog/catalog.ts';
import type { FaultEvent, Faults } from './faults.ts';

type Rates = Partial<Record<FaultName, number>>;

/** Probability of each fault on each occasion, for `rough`. */
const rough: Rates = {
  latency: 0.05,
  'answer-lost': 0.02,
  'request-lost': 0.02,
  'carried-out-late': 0.01,
  'delivered-twice': 0.01,
  'half-body-reset': 0.01,
  'truncated-json': 0.01,
  'html-page': 0.01,
  'false-404': 0.005,
  'unknown-status': 0.01,
  'partial-list': 0.02,
  'capacity-gone': 0.1,
  'delete-locked': 0.1,
  'http-401': 0.005,
  'http-429': 0.02,
  'http-500': 0.03,
  'http-502': 0.01,
  'http-503': 0.02,
  'http-504': 0.01,
  'platform-call-lost': 0.05,
  'platform-answer-lost': 0.05,
  'platform-unknown': 0.05,
  'platform-slow': 0.05,
  'platform-locked': 0.02,
  'platform-partial-list': 0.02,
  'create-fails-after-creating': 0.02,
  'destroy-lies': 0.02,
  'boot-fails': 0.01,
  'spot-reclaim': 0.002,
  'guest-power-off': 0.002,
  'machine-lost': 0.001,
  'ssh-silent': 0.02,
  'ssh-key-refused': 0.01,
};
const LIGHT_SHARE = 0.2;

export const weatherSchema = z.strictObject({
  seed: z.union([z.string(), z.int()]).optional().meta({ description: 'Default: the seed of the sandbox.' }),
  strength: z.enum(['light', 'rough']).default('light'),
  rates: z
    .partialRecord(z.enum(faultNames), z.number().min(0).max(1))
    .optional()
    .meta({ description: 'Probability of each fault on each occasion, overriding `strength`.' }),
  provider: z.string().optional(),
  account: z.string().optional(),
  for_ms: z.number().min(0).optional().meta({ description: 'It ends after this time.' }),
});
export type WeatherOptions = z.input<typeof weatherSchema>;

/** Random faults: the same seed strikes the same steps. */
export class Weather {
  readonly #faults: Faults;
  readonly #seed: string;
  readonly #startAt: number;

  /** `startAt`: when the sandbox's time began. */
  constructor(faults: Faults, seed: string, startAt: number) {
    this.#faults = faults;
    this.#seed = seed;
    this.#startAt = startAt;
  }

  /** Starts, and returns the id. @throws {ApiError} */
  async start(options: WeatherOptions = {}): Promise<{ id: string; seed: string; rates: Rates }> {
    const {
      strength,
      rates = ratesOf(strength),
      seed = this.#seed,
      ...scope
    } = parseSetting(weatherSchema, options);
    const id = this.#faults.nextWeather();
    for (const [name, probability] of Object.entries(rates) as [FaultName, number][])
      await this.#faults.arm(name, { ...scope, probability, seed, times: 'sticky' }, id);
    return { id, seed: String(seed), rates };
  }

  /** Ends this weather, or all. */
  stop(id?: string): void {
    this.#faults.clear({ weather: id ?? 'any' });
  }

  /** Lists its strikes, one line each: the time since `since` or the sandbox's start, the step, and the fault. */
  report({ id, since = this.#startAt }: { id?: string; since?: number } = {}): string[] {
    return this.#faults.events
      .filter(({ weather }) => (id === undefined ? weather !== undefined : weather === id))
      .map((event) => lineOf(event, since));
  }
}

function ratesOf(strength: 'light' | 'rough'): Rates {
  const share = strength === 'light' ? LIGHT_SHARE : 1;
  return Object.fromEntries(Object.entries(rough).map(([name, rate]) => [name, rate * share]));
}

function lineOf({ at, step, fault, resource }: FaultEvent, since: number): string {
  return `+${((at - since) / 1_000).toFixed(3)} s  ${step}${resource === undefined ? '' : ` ${resource}`}: ${fault}`;
}
