import { createHash } from 'node:crypto';
import type { Random } from '../../ports/clock.ts';

/**
 * Chance that repeats itself: the same seed gives the same numbers. sfc32 (Chris Doty-Humphrey's
 * Small Fast Counter, 32 bit), its state filled from SHA-256 of the seed. Not fit for secrets.
 */
export function createSeededRandom(seed: string): Random {
  const digest = createHash('sha256').update(seed).digest();
  let [a, b, c, counter] = [0, 4, 8, 12].map((offset) => digest.readInt32LE(offset)) as [
    number,
    number,
    number,
    number,
  ];

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
  };
}
