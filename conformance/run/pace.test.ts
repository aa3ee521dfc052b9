import { beforeAll, expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { toPlan } from '../doctor/plan.ts';
import { Evidence } from '../evidence/evidence.ts';
import { reads } from '../evidence/instances.ts';
import { reddened, runAgainst, type Trial } from '../mutants/harness.ts';
import { SCENARIOS } from '../scenarios/index.ts';
import type { Level } from '../transcript/records.ts';

const { rows } = loadRequirements();
const MINUTE_MS = 60_000;
/** A provider whose machines boot in two seconds. */
const FAST = { bootMs: 2000, stopMs: 1000, startMs: 2000, destroyMs: 1000 };
/** A provider whose machines boot in the five minutes that the contract calls typical. */
const TYPICAL = { bootMs: 5 * MINUTE_MS, stopMs: 20_000, startMs: MINUTE_MS, destroyMs: 20_000 };

function expectAllTested({ judged }: Trial): void {
  const open = judged.filter(({ verdict }) => verdict === 'not_tested');
  expect(open.map(({ requirement }) => requirement.id)).toEqual([]);
}

let fast: Trial;
beforeAll(async () => {
  fast = await runAgainst({ options: FAST, run: { pollIntervalMs: 1000 } }, rows);
});

it('a full run of a fast provider takes two minutes at most, with a second sale and the reads at the end', () => {
  const evidence = new Evidence(fast.records);
  expect(fast.tookMs).toBeLessThanOrEqual(2 * MINUTE_MS);
  expect(evidence.steps('race/refill/create')).toMatchObject([{ answer: { status: 201 } }]);
  expect(reddened(fast)).toEqual([]);
  expectAllTested(fast);
});

it('the first instance is read once a poll interval while others are created, used and destroyed', () => {
  const evidence = new Evidence(fast.records);
  const first = evidence.instances.find(({ created }) => created?.step === 'create/post');
  const stop = evidence.step('stop/post').sentAt;
  const readAt = first === undefined ? [] : reads(first).map(({ exchange }) => exchange.sentAt);
  const observed = readAt.filter((at) => at > evidence.step('online/list').sentAt && at < stop);
  const gaps = observed.map((at, index) => at - (observed[index - 1] ?? at));
  expect(observed.length).toBeGreaterThan(60);
  // A list at a drawn moment, and a login, may come between two polls.
  expect(Math.max(...gaps)).toBeLessThan(2100);
});

function plannedMinutes({ records }: Trial, level: Level): number {
  const evidence = new Evidence(records);
  const scenarios = SCENARIOS.filter((scenario) => level === 'full' || scenario.level !== 'full');
  const { settings } = evidence.run;
  const nothing = { checks: CHECKS, availability: [], configurations: [] };
  return toPlan({ level, settings, scenarios, ...nothing }).minutes.typical;
}

it.each(['lifecycle', 'full'] as const)(
  'at the usual pace, level %s takes no longer than its plan says, which is 20 minutes at most',
  async (level) => {
    const needs = SCENARIOS.filter((one) => level === 'full' || one.level !== 'full');
    const trial = await runAgainst(
      { options: TYPICAL },
      rows,
      needs.map(({ id }) => ({ level, scenarios: [id] })),
    );
    const planned = plannedMinutes(trial, level);
    expect(planned).toBeLessThanOrEqual(20);
    expect(trial.tookMs).toBeLessThanOrEqual(planned * MINUTE_MS);
    expect(trial.tookMs).toBeGreaterThan((planned * MINUTE_MS) / 2);
  },
);
