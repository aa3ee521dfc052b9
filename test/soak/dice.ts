import { createSeededRandom } from '../../src/drivers/kit/seeded-random.ts';
import type { Random } from '../../src/ports/clock.ts';

/** Chance of one part of the run: what another part draws changes nothing here. */
export class Dice {
  readonly #random: Random;

  constructor(seed: string, part: string) {
    this.#random = createSeededRandom(`${seed}/${part}`);
  }

  /** In [0, 1). */
  chance(): number {
    return this.#random.next();
  }

  between(min: number, max: number): number {
    return min + this.#random.next() * (max - min);
  }

  pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.#random.next() * items.length)];
  }

  /** One of the names, as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][];
    let left = this.#random.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    throw new RangeError('there is nothing to draw from');
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Tries until it succeeds: a database or a simulator that was just restarted is waited for. */
export async function insistently<T>(attempt: () => Promise<T>, patienceMs = 30_000): Promise<T> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(100);
    }
  }
}
