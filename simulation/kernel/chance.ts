import { createSeededRandom } from '../../src/drivers/kit/seeded-random.ts';
import type { Random } from '../../src/ports/clock.ts';

/** A seeded source of chance. Each part has a fork of its own: if it draws more, the others draw what they drew before. */
export class Chance implements Random {
  readonly #seed: string;
  readonly #random: Random;

  constructor(seed: string) {
    this.#seed = seed;
    this.#random = createSeededRandom(seed);
  }

  fork(label: string): Chance {
    return new Chance(`${this.#seed}/${label}`);
  }

  next(): number {
    return this.#random.next();
  }

  bytes(length: number): Buffer {
    return this.#random.bytes(length);
  }

  happens(probability: number): boolean {
    return probability > 0 && this.#random.next() < probability;
  }

  /** A number from `min` up to, and without, `max`. */
  between(min: number, max: number): number {
    return min + this.#random.next() * (max - min);
  }

  /** A whole number from `min` to `max`, both included. */
  whole(min: number, max: number): number {
    return Math.floor(this.between(min, max + 1));
  }

  /** @throws {RangeError} if there is nothing to pick from. */
  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.#random.next() * items.length)];
    if (item === undefined) throw new RangeError('nothing to pick from');
    return item;
  }

  /** Picks one of the keys, in proportion to their weights. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][];
    let left = this.#random.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    const last = entries.at(-1);
    if (last === undefined) throw new RangeError('nothing to pick from');
    return last[0];
  }
}
