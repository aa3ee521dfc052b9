import { expect } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { reddened, runAgainst } from './harness.ts';
import type { Mutant, Variation } from './mutant.ts';

const { rows } = loadRequirements();

/** Expects that a plain run of a lawful form fails nowhere and leaves nothing. */
export async function expectNoFailureInPlain({
  behave,
  warns = [],
  id: _id,
  why: _why,
  ...subject
}: Variation): Promise<void> {
  const trial = await runAgainst(
    {
      ...subject,
      ...(behave && { behave: (rules, _hit, clock) => behave(rules, clock) }),
      run: { ...subject.run, plain: true },
    },
    rows,
  );
  expect(trial.records.at(-1)).toMatchObject({ kind: 'end', reason: 'completed' });
  expect(warns).toEqual(expect.arrayContaining(reddened(trial)));
  expect(trial.leaked, 'resources that were left and not reported').toEqual([]);
}

/** Expects that a usual run finds nothing in a server that recognises the suite. */
export async function expectUnseenInUsual({ run: _run, ...mutant }: Mutant): Promise<void> {
  const trial = await runAgainst(mutant, rows);
  expect(reddened(trial)).toEqual([]);
  expect(trial.hits, 'times that the deviation took effect').toBe(0);
}
