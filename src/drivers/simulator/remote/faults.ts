import { z } from 'zod';
import type { Random } from '../../../ports/clock.ts';
import { createSeededRandom } from '../../kit/seeded-random.ts';
import type { CallName } from './protocol.ts';

/**
 * Faults of a call: those of the kit, `delay` (the answer is up to `delayMs` late) and `auth` (the token is refused).
 */
const faultName = z.enum(['fail-before', 'fail-after', 'hang', 'unknown', 'lie-empty', 'delay', 'auth']);
export type RemoteFault = z.infer<typeof faultName>;

/** Body of `PUT /control/faults`. Each later call gets the first fault that is drawn and fits the call. */
export const faultSettingsSchema = z.strictObject({
  seed: z.string(),
  rates: z.partialRecord(faultName, z.number().min(0).max(1)),
  delayMs: z.number().nonnegative().default(1_000),
});
export type FaultSettings = z.infer<typeof faultSettingsSchema>;

/** Draws the fault of each call and counts the faults drawn. */
export class RemoteFaults {
  #settings: FaultSettings = { seed: '', rates: {}, delayMs: 0 };
  #random: Random = createSeededRandom('');
  readonly #counts: Partial<Record<RemoteFault, number>> = {};

  set(settings: FaultSettings): void {
    this.#settings = settings;
    this.#random = createSeededRandom(settings.seed);
  }

  get counts(): Readonly<Partial<Record<RemoteFault, number>>> {
    return this.#counts;
  }

  draw(name: CallName): RemoteFault | undefined {
    const rates = Object.entries(this.#settings.rates) as [RemoteFault, number][];
    const fault = rates.find(([fault, rate]) => this.#random.next() < rate && fits(fault, name))?.[0];
    if (fault !== undefined) this.#counts[fault] = (this.#counts[fault] ?? 0) + 1;
    return fault;
  }

  drawDelayMs(): number {
    return Math.round(this.#random.next() * this.#settings.delayMs);
  }
}

function fits(fault: RemoteFault, name: CallName): boolean {
  const isListing = name === 'list' || name === 'volumes.list';
  if (fault === 'lie-empty') return isListing;
  return fault !== 'unknown' || isListing || name === 'get' || name === 'volumes.get';
}
