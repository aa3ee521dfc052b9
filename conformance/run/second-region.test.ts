import { expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { Evidence } from '../evidence/evidence.ts';
import { runAgainst } from '../mutants/harness.ts';
import { toPlan } from '../plan/plan.ts';
import { SCENARIOS } from '../scenarios/index.ts';

const { rows } = loadRequirements();
/** In USD: enough for the race (three at 0.80 an hour for ten hours) and one instance more, and not for two. */
const SMALL_CAP = 24.45;

const run = (maxCostUsd: number) => runAgainst({ run: { maxCostUsd } }, rows);

it('beyond the cap nothing is bought in a second region, and everything else is tested', async () => {
  const { judged } = await run(SMALL_CAP);
  expect(judged.find(({ requirement }) => requirement.id === 'REG-BUY-001')?.ruling).toMatchObject({
    verdict: 'not_applicable',
    capability: 'a second region within --max-cost',
  });
  expect(judged.filter(({ verdict }) => verdict === 'not_tested')).toEqual([]);
});

it('the plan has the instance in a second region only where the cap allows it beside all else', async () => {
  const { records } = await run(SMALL_CAP);
  const evidence = new Evidence(records);
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
