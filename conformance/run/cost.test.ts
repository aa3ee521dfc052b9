import { expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { Evidence } from '../evidence/evidence.ts';
import { runAgainst } from '../mutants/harness.ts';
import { stubbornMutants } from '../mutants/instances/stubborn.mutants.ts';
import { toPlan } from '../plan/plan.ts';
import { toReceipt, totalOf } from '../report/receipt.ts';
import { SCENARIOS } from '../scenarios/index.ts';
import { REFUSAL_CASES } from '../scenarios/instances/refusal-cases.ts';

const { rows } = loadRequirements();
const lax = stubbornMutants.find(({ id }) => id === 'accepts-bad-creates');
if (lax === undefined) throw new Error('there is no lax server');

async function runLax(exhaustive: boolean) {
  const { records, judged, tookMs } = await runAgainst({ ...lax, run: { exhaustive } }, rows);
  const evidence = new Evidence(records);
  const accepted = evidence.resources.filter(
    ({ step, id }) => step.startsWith('refusals/') && id !== undefined,
  );
  return { evidence, judged, accepted, usd: totalOf(toReceipt(records, tookMs)).usd };
}

it('a target that accepts bad creates sells two of a kind, and the rest would buy', async () => {
  const { evidence, judged, accepted, usd } = await runLax(false);
  expect(accepted).toHaveLength(2);
  const images = judged.find(({ requirement }) => requirement.id === 'NEG-IMAGE-001');
  expect(images?.ruling).toMatchObject({
    verdict: 'not_tested',
    reason: expect.stringMatching(/^would buy: .*--exhaustive/),
  });
  const [configurations, availability] = ['/configurations', '/availability'].map((path) => {
    const read = evidence.exchanges.find(({ request }) => request.path === path);
    return JSON.parse(read?.answer?.body ?? '{}').configurations;
  });
  const plan = toPlan({
    level: 'full',
    settings: evidence.run.settings,
    scenarios: SCENARIOS,
    checks: CHECKS,
    availability,
    configurations,
  });
  expect(usd).toBeLessThan(plan.worst_case_usd);
});

it('only of what the contract lets an orchestrator ignore are more sold', () => {
  const levels = new Map(rows.map(({ id, level }) => [id, level]));
  const lawful = REFUSAL_CASES.filter(({ mayBeAccepted }) => mayBeAccepted === true);
  expect(lawful).toEqual(REFUSAL_CASES.filter(({ of }) => levels.get(of) === 'SHOULD'));
  expect(lawful).not.toEqual([]);
});

it('--exhaustive sends all of them', async () => {
  const { accepted } = await runLax(true);
  expect(accepted.length).toBeGreaterThan(5);
});
