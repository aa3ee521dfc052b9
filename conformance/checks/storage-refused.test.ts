import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { reddened, runAgainst } from '../mutants/harness.ts';
import { ApiError } from '../mutants/reference/errors.ts';

it.each(['capacity_unavailable', 'quota_exceeded'])(
  'a provider that refuses every volume with 409 %s gets only the note that volumes were not tested',
  async (code) => {
    const { rows } = loadRequirements();
    const trial = await runAgainst(
      {
        behave: (rules) => ({
          ...rules,
          validateVolume(body, context) {
            const issues = rules.validateVolume(body, context);
            if (issues.length > 0) return issues;
            throw new ApiError(409, code, 'There is no storage left.');
          },
        }),
      },
      rows,
      [{ level: 'full', scenarios: ['volumes', 'companion', 'restart'] }],
    );
    expect(reddened(trial)).toEqual([]);
    const verdict = trial.judged.find(({ requirement }) => requirement.id === 'VOL-CREATE-001')?.verdict;
    expect(verdict).toBe('not_tested');
  },
);
