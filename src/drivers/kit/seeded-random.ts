import { createHash } from 'node:crypto';
import type { Random } from '../../ports/clock.ts';

/** The state of a generator. */
export type RandomState = readonly [number, number, number, number];

export interface SeededRandom extends Random {
  /** The current state. A generator made from it continues with the same numbers. */
  state(): RandomState;
}

/**
 * Makes a repeatable generator: the same seed gives the same numbers. sfc32 (Chris Doty-Humphrey's Small Fast
 * Counter, 32 bit), seeded with SHA-256. Not fit for secrets. `from`: the initial state, if not that of the seed.
 */
export function createSeededRandom(seed: string, from = stateOf(seed)): SeededRandom {
  let [a, b, c, counter] = from;

  const nextUint32 = (): number => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };

  return {
    next: () => nextUint32() / 2 ** 32,
    bytes: (length) => Buffer.from(Array.from({ length }, () => nextUint32() & 0xff)),
    state: () => [a, b, c, counter],
  };
}

function stateOf(seed: string): RandomState {
  const digest = createHash('sha256').update(seed).digest();
  return [digest.readInt32LE(0), digest.readInt32LE(4), digest.readInt32LE(8), digest.readInt32LE(12)];
}
