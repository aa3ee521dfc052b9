import { expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
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
    CHECKS.filter(({ id }) => id === 'INS-LIST-001'),
  );
  expect(reddened(trial)).toEqual([]);
  expect(trial.judged.find(({ requirement }) => requirement.id === 'INS-LIST-001')?.ruling).toMatchObject({
    verdict: 'not_tested',
    reason: expect.stringMatching(/\/instances.* 67108864 bytes/),
  });
});
