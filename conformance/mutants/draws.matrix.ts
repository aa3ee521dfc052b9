import { describe, expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { reddened, runAgainst, type Subject } from './harness.ts';

const { rows } = loadRequirements();

/** Every answer takes so long. */
const slow =
  (ms: number): NonNullable<Subject['behave']> =>
  (rules) => ({ ...rules, answerDelayMs: () => ms });

/** `runAgainst` draws each run again, and throws where `verify --challenge` would refuse it. */
describe.each<[string, Omit<Subject, 'seed'>]>([
  ['as usual', {}],
  ['that polls every 500 ms', { run: { pollIntervalMs: 500 } }],
  ['with tokens that expire', { signsInWith: 'login', options: { token: 'password', tokenLifetimeS: 90 } }],
  ['of a target that takes 700 ms', { behave: slow(700) }],
  ['of a target with 40 more regions', { options: { moreRegions: 40 } }],
])('a run %s', (_what, subject) => {
  it.each([1, 2, 3, 4, 5, 6])('draws what its seed draws (seed %s)', async (seed) => {
    expect(reddened(await runAgainst({ ...subject, seed: `seed ${seed}` }, rows))).toEqual([]);
  });
});
