import { expect } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { SCENARIOS } from '../scenarios/index.ts';
import { countVerdicts, outcomeOf } from '../verdict/outcome.ts';
import { type Need, reddened, runAgainst, type Trial } from './harness.ts';
import type { Mutant, Variation } from './mutant.ts';

const { rows } = loadRequirements();

/** What a run needs to show the mutant to the checks that must fail. */
export function needsOf({ reddens, alsoIn = [] }: Mutant): Need[] {
  const also = SCENARIOS.filter(({ id }) => alsoIn.includes(id));
  return [
    ...CHECKS.filter(({ id }) => reddens.includes(id)),
    ...also.map(({ level, id }) => ({ level, scenarios: [id] })),
  ];
}

/**
 * Expects that the mutant's deviation took effect, and that exactly the checks in `reddens` failed: in a run of the whole
 * suite or of what `needs` names.
 */
export async function expectKilled(mutant: Mutant, needs?: readonly Need[]): Promise<void> {
  const trial = await runAgainst(mutant, rows, needs);
  expect(endOf(trial)).toEqual({ reason: 'completed' });
  expect(trial.hits, 'times that the deviation took effect').toBeGreaterThan(0);
  expect(reddened(trial)).toEqual(mutant.reddens.toSorted());
  expect(trial.leaked, 'resources that were left and not reported').toEqual([]);
}

/** Expects that no check fails and none is left untested. */
export async function expectConformant(variation: Variation): Promise<void> {
  const { behave, warns = [], id: _id, why: _why, ...subject } = variation;
  const trial = await runAgainst(
    {
      ...subject,
      ...(behave && { behave: (rules, _hit, clock) => behave(rules, clock) }),
    },
    rows,
  );
  const { records, judged } = trial;
  expect(endOf(trial)).toEqual({ reason: 'completed' });
  expect(reddened(trial)).toEqual(warns);
  expect(trial.leaked, 'resources that were left and not reported').toEqual([]);
  expect(
    judged.flatMap(({ requirement, verdict }) => (verdict === 'not_tested' ? [requirement.id] : [])),
  ).toEqual([]);
  const [run1] = records;
  const end = records.at(-1);
  if (run1?.kind !== 'run' || end?.kind !== 'end') throw new Error('a run begins and ends');
  expect(outcomeOf(run1, end, countVerdicts(judged))).toBe('CONFORMANT');
}

function endOf({ records }: Trial): unknown {
  const end = records.at(-1);
  return end?.kind === 'end' ? { reason: end.reason, ...(end.detail && { detail: end.detail }) } : undefined;
}
