import { beforeAll, expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { toPlan } from '../doctor/plan.ts';
import { Evidence } from '../evidence/evidence.ts';
import { runAgainst, type Subject, type Trial } from '../mutants/harness.ts';
import { SCENARIOS } from '../scenarios/index.ts';

const { rows } = loadRequirements();
/** In USD: enough for the race (three at 0.80 an hour for ten hours) and one instance more, and not for two. */
const SMALL_CAP = 24.45;

let trial: Trial;
beforeAll(async () => {
  trial = await runAgainst({ run: { maxCostUsd: SMALL_CAP } }, rows);
});

it('beyond the cap nothing is bought in a second region, and everything else is tested', () => {
  const { judged } = trial;
  expect(judged.find(({ requirement }) => requirement.id === 'REG-BUY-001')?.ruling).toMatchObject({
    verdict: 'not_applicable',
    capability: 'a second region within --max-cost',
  });
  expect(judged.filter(({ verdict }) => verdict === 'not_tested')).toEqual([]);
});

it('an offer that names a region, and that /availability?region= of it does not list, is not bought there', async () => {
  const isThere = ({ id }: { id: string }, region: string): boolean =>
    id !== 'cpu-small' || region === 'eu-north';
  const gated: Subject['behave'] = (rules, hit) => ({
    ...rules,
    isAvailable: (offer, region) => isThere(offer, region) && rules.isAvailable(offer, region),
    // The unfiltered list names every region of an offer.
    regionsShown: (offer) => [...offer.free.keys()],
    claimCapacity(offer, region) {
      if (!isThere(offer, region)) hit();
      return isThere(offer, region) && rules.claimCapacity(offer, region);
    },
  });
  const scenarios = ['online', 'elsewhere', 'elsewhere-end'];
  const { hits, judged } = await runAgainst({ behave: gated }, rows, [{ level: 'full', scenarios }]);
  expect(hits).toBe(0);
  expect(judged.find(({ requirement }) => requirement.id === 'REG-BUY-001')?.ruling).toMatchObject({
    verdict: 'not_applicable',
    capability: 'an offer in a second region',
  });
});

it('the plan has the instance in a second region only where the cap allows it beside all else', () => {
  const evidence = new Evidence(trial.records);
  const [availability, configurations] = ['/availability', '/configurations'].map((path) => {
    const read = evidence.exchanges.find(({ request }) => request.path === path);
    return JSON.parse(read?.answer?.body ?? '{}').configurations;
  });
  const planned = (maxCostUsd: number) =>
    toPlan({
      level: 'full',
      settings: { ...evidence.run.settings, maxCostUsd },
      scenarios: SCENARIOS,
      checks: CHECKS,
      availability,
      configurations,
    });
  const needed = planned(0).worst_case_usd;
  const elsewhere = (maxCostUsd: number) =>
    planned(maxCostUsd).purchases.find(({ scenario }) => scenario === 'elsewhere');
  expect(elsewhere(needed)).toBeUndefined();
  expect(elsewhere(needed + 1)).toMatchObject({ offer: 'cpu-small', region: 'us-east' });
});
