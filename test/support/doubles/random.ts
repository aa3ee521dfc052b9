import { createSeededRandom } from '../../../src/drivers/kit/seeded-random.ts';
import type { Random } from '../../../src/ports/clock.ts';
import { systemRandom } from '../../../src/runtime/system.ts';

/** Pauses are the same in each run of a test; ids and keys differ, also between servers that share a database. */
export function steadyRandom(): Random {
  return { next: createSeededRandom('steady').next, bytes: systemRandom.bytes };
}
