import { expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { expectConformant, expectKilled } from './matrix.ts';
import { allMutants } from './mutants.ts';
import { variations } from './variations.ts';

it('every check has a mutant, or a lawful form that it warns of, and each names checks that exist', () => {
  const rows = new Set(loadRequirements().rows.map(({ id }) => id));
  const reddened = new Set([
    ...allMutants.flatMap(({ reddens }) => reddens),
    ...variations.flatMap(({ warns = [] }) => warns),
  ]);
  expect(CHECKS.map(({ id }) => id).filter((id) => !reddened.has(id))).toEqual([]);
  expect([...reddened].filter((id) => !rows.has(id))).toEqual([]);
  expect(allMutants.length).toBeGreaterThanOrEqual(90);
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
  await expect(expectKilled({ ...mutant, reddens: [] })).rejects.toThrow(mutant.reddens[0]);
});
