import { expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { toPlan } from '../doctor/plan.ts';
import { Evidence } from '../evidence/evidence.ts';
import { reddened, runAgainst, type Subject } from '../mutants/harness.ts';
import { toReceipt, totalOf } from '../report/receipt.ts';
import { SCENARIOS } from '../scenarios/index.ts';
import { REFUSAL_CASES } from '../scenarios/instances/refusal-cases.ts';

const { rows } = loadRequirements();
const NEEDS = [{ level: 'full', scenarios: ['refusals', 'create'] }] as const;
/** Accepts every create that names an offer and a region. */
const lax: NonNullable<Subject['behave']> = (rules) => ({
  ...rules,
  validateCreate(body, context) {
    const { configuration_id, region, ssh_keys: keys } = body as Record<string, unknown>;
    const isRead = typeof configuration_id === 'string' && typeof region === 'string';
    return isRead && (keys === undefined || Array.isArray(keys)) ? [] : rules.validateCreate(body, context);
  },
});

async function runLax(exhaustive: boolean) {
  const { records, judged, tookMs } = await runAgainst({ behave: lax, run: { exhaustive } }, rows, NEEDS);
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

it('what was sold by mistake is destroyed before the cap on the cost ends the run', async () => {
  // These two are the cases that the contract lets an orchestrator ignore, after which all others are still sent.
  const lenient: Subject['behave'] = (rules) => ({
    ...rules,
    validateCreate(body, context) {
      const { name, root_disk_size_gb: disk } = body as Record<string, unknown>;
      const isOdd = typeof name === 'number' || typeof disk === 'string';
      return isOdd ? [] : rules.validateCreate(body, context);
    },
  });
  const { records } = await runAgainst({ behave: lenient }, rows, NEEDS);
  const { resources, run } = new Evidence(records);
  const sold = resources.filter(({ step, id }) => step.startsWith('refusals/') && id !== undefined);
  expect(sold).toHaveLength(2);
  const { maxMinutes, readyTimeoutMs } = run.settings;
  const longestUsd = ((sold[0]?.pricePerHour ?? 0) * (maxMinutes * 60_000 + readyTimeoutMs)) / 3_600_000;
  const { judged } = await runAgainst(
    { behave: lenient, run: { maxCostUsd: longestUsd * 1.5 } },
    rows,
    NEEDS,
  );
  const verdictOf = (id: string) => judged.find(({ requirement }) => requirement.id === id)?.verdict;
  expect(verdictOf('NEG-IMAGE-001')).toBe('pass');
  expect(verdictOf('INS-CREATE-001')).toBe('pass');
});

it('of volumes whose price a create has shown, no more are bought than --max-cost allows', async () => {
  const boughtIn = ({ resources }: Evidence) =>
    resources.flatMap(({ type, id, step }) => (type === 'volume' && id !== undefined ? [step] : []));
  const usual = new Evidence((await runAgainst({}, rows)).records);
  const { maxMinutes, readyTimeoutMs, maxCostUsd } = usual.run.settings;
  // The cap has room for one of them, not for two.
  const longestHours = (maxMinutes * 60_000 + readyTimeoutMs) / 3_600_000;
  const dear: Subject['behave'] = (rules) => ({
    ...rules,
    showVolume: (volume, shown, request) => ({
      ...rules.showVolume(volume, shown, request),
      price_per_hour: (maxCostUsd * 0.75) / longestHours,
    }),
  });
  const { records, judged } = await runAgainst({ behave: dear }, rows);
  expect(boughtIn(usual)).toEqual(
    expect.arrayContaining(['volumes/create/10-gb', 'volumes/inline/create/10-gb']),
  );
  // The second is bought when the first is gone.
  expect(boughtIn(new Evidence(records))).toEqual(['companion/volume/10-gb', 'restart/volume/10-gb']);
  const { ruling } = judged.find(({ requirement }) => requirement.id === 'VOL-ATTACH-006') ?? {};
  expect(ruling).toMatchObject({
    verdict: 'not_tested',
    reason: expect.stringContaining('more than --max-cost 1000'),
  });
});

it('a sold-out offer that the cap on the cost excludes is not applicable, with the cap that would do', async () => {
  const dear: Subject['behave'] = (rules) => ({
    ...rules,
    showOffer: (offer, shown, list) =>
      rules.showOffer(offer, offer.id === 'metal-epyc' ? { ...shown, price_per_hour: 9_000 } : shown, list),
  });
  const trial = await runAgainst({ behave: dear }, rows);
  const soldOut = trial.judged.find(({ requirement }) => requirement.id === 'AVL-SOLDOUT-001');
  expect(soldOut?.ruling).toMatchObject({
    verdict: 'not_applicable',
    reason: expect.stringMatching(/more than --max-cost 1000 \(--max-cost 15\d\d\.\d\d would do\)/),
  });
  expect(reddened(trial)).toEqual([]);
});
