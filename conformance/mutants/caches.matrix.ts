import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { reddened, runAgainst } from './harness.ts';
import { cached } from './repetition.mutants.ts';

const { rows } = loadRequirements();
const LIFETIMES_S = [30, 60];
const MOMENTS = 6;

const cases = ['GET /availability', 'GET /instances', 'GET /instances/{instanceId}'].flatMap((route) =>
  LIFETIMES_S.flatMap((seconds) =>
    Array.from({ length: MOMENTS }, (_, index) => ({ route, seconds, at: (index * seconds) / MOMENTS })),
  ),
);

/** The verdicts name a chance of nearly nothing for these, whenever they are filled anew. */
it.each(cases)(
  'a cache of $route that lives $seconds s and is filled at $at s is seen',
  async ({ route, seconds, at }) => {
    const trial = await runAgainst({ behave: cached(route, seconds * 1000, at * 1000) }, rows);
    expect(reddened(trial)).not.toEqual([]);
  },
);
