import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { LONGEST_LIST_BYTES } from '../http/call.ts';
import { reddened, runAgainst } from './harness.ts';

it('a list that is longer than the suite reads is no failure: what needs it is not tested, and says why', async () => {
  const raw = 'x'.repeat(LONGEST_LIST_BYTES + 1);
  const trial = await runAgainst(
    {
      behave: (rules) => ({
        ...rules,
        answer: (request, answer) =>
          request.route === 'GET /instances' && answer.status === 200
            ? { ...answer, raw }
            : rules.answer(request, answer),
      }),
    },
    loadRequirements().rows,
  );
  expect(reddened(trial)).toEqual([]);
  const untested = trial.judged.flatMap(({ requirement, ruling }) =>
    ruling.verdict === 'not_tested' ? [[requirement.id, ruling.reason]] : [],
  );
  expect(untested.map(([id]) => id)).toContain('INS-LIST-001');
  for (const [, reason] of untested) expect(reason).toMatch(/\/instances.* 67108864 bytes/);
});
