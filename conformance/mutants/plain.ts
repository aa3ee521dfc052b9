import { expect } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { reddened, runAgainst } from './harness.ts';
import type { Variation } from './mutant.ts';

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
