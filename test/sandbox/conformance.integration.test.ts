import { expect, it } from 'vitest';
import { loadRequirements } from '../../conformance/contract/requirements.ts';
import { CHECKS } from '../../conformance/index.ts';
import { createSandbox } from '../../src/compose/sandbox/sandbox.ts';
import { judgeProvider, reddened } from './conformance.ts';

/** What one machine and one key decide, in both tiers; the long tests run all of it, against each provider and `berth serve`. */
it('the server keeps the contract in both of its tiers', async () => {
  const tiers = new Map(loadRequirements().rows.map(({ id, tier }) => [id, tier]));
  const only = CHECKS.filter(
    ({ id, level, scenarios }) =>
      level !== 'full' ||
      (tiers.get(id) === 'storage' && !scenarios.some((one) => /companion|restart/.test(one))),
  ).map(({ id }) => id);
  await using sandbox = await createSandbox({ origin: 'https://sandbox.test', providers: ['d'] });
  const judged = await judgeProvider(sandbox, 'd', { level: 'full', only });
  const passed = judged.filter(({ verdict }) => verdict === 'pass');
  const count = (tier: string): number =>
    passed.filter(({ requirement }) => requirement.tier === tier).length;
  expect(reddened(judged)).toEqual([]);
  expect(judged.filter(({ verdict }) => verdict === 'not_tested')).toEqual([]);
  expect(count('compute')).toBeGreaterThan(120);
  expect(count('storage')).toBeGreaterThan(25);
});
