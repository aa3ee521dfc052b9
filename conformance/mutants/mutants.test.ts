import { describe, expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { type Need, reddened, runAgainst, type Trial } from './harness.ts';
import { expectConformant, expectKilled, needsOf } from './matrix.ts';
import type { Mutant } from './mutant.ts';
import { allMutants } from './mutants.ts';
import { defaultOptions } from './reference/model.ts';
import { variations } from './variations.ts';

const { rows } = loadRequirements();

it('every check has a mutant, or a lawful form that it warns of, and each names checks that exist', () => {
  const ids = new Set(rows.map(({ id }) => id));
  const reddened = new Set([
    ...allMutants.flatMap(({ reddens }) => reddens),
    ...variations.flatMap(({ warns = [] }) => warns),
  ]);
  expect(CHECKS.map(({ id }) => id).filter((id) => !reddened.has(id))).toEqual([]);
  expect([...reddened].filter((id) => !ids.has(id))).toEqual([]);
});

it.each([
  ['mutants', allMutants],
  ['variations', variations],
])('%s have names of their own', (_what, list: readonly { id: string }[]) => {
  const ids = list.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
});

it('the reference as it is is conformant', () => expectConformant({ id: 'reference', why: 'it is correct' }));

it('reports a check that goes red for a mutant that does not name it', async () => {
  const [mutant] = allMutants;
  if (mutant === undefined) throw new Error('there are no mutants');
  await expect(expectKilled({ ...mutant, reddens: [] }, needsOf(mutant))).rejects.toThrow(mutant.reddens[0]);
});

/** Runs only the scenarios that the checks need; `npm run conformance:matrix` runs the whole suite against each. */
describe('the checks that a mutant names, and no others, fail in it, and none without it:', () => {
  const trials = new Map<string, Promise<Trial>>();
  /** The same run against the reference without the fault. The base URL is itself the fault of two mutants. */
  const runSound = ({ behave: _, ...mutant }: Mutant, needs: readonly Need[]): Promise<Trial> => {
    const subject = { ...mutant, options: { ...mutant.options, baseUrl: defaultOptions.baseUrl } };
    const parts = needs.map(({ level, scenarios }) => [level, scenarios]);
    const key = JSON.stringify([subject.options, subject.run, subject.signsInWith, parts]);
    const trial = trials.get(key) ?? runAgainst(subject, rows, needs);
    trials.set(key, trial);
    return trial;
  };

  it.each(allMutants.map((mutant) => [mutant.id, mutant] as const))('%s', async (_id, mutant) => {
    const needs = needsOf(mutant);
    const sound = await runSound(mutant, needs);
    const named = sound.judged.filter(({ requirement }) => mutant.reddens.includes(requirement.id));
    expect(reddened(sound)).toEqual([]);
    expect(named.filter(({ verdict }) => verdict === 'not_tested' || verdict === 'not_selected')).toEqual([]);
    await expectKilled(mutant, needs);
  });
});
