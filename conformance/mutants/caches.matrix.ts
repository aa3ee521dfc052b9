import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { reddened, runAgainst } from './harness.ts';
import type { Mutant } from './mutant.ts';
import type { WireAnswer } from './reference/exchange.ts';

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

/** Answers from a copy of each answer, which is made anew in every period of `lifetimeMs`. */
function cached(route: string, lifetimeMs: number, firstAtMs: number): Mutant['behave'] {
  return (rules, hit, clock) => {
    const copies = new Map<string, { period: number; answer: WireAnswer }>();
    return {
      ...rules,
      answer(request, answer) {
        const usual = rules.answer(request, answer);
        if (request.route !== route || usual.status >= 500 || usual.status === 401) return usual;
        const period = Math.floor((clock.now() - firstAtMs) / lifetimeMs);
        const key = `${request.path}?${request.query} ${request.headers['authorization']}`;
        const copy = copies.get(key);
        if (copy?.period !== period) {
          copies.set(key, { period, answer: structuredClone(usual) });
          return usual;
        }
        if (JSON.stringify(copy.answer.json) !== JSON.stringify(usual.json)) hit();
        return copy.answer;
      },
    };
  };
}
