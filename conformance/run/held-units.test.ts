import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { runAgainst, type Subject } from '../mutants/harness.ts';
import { variations } from '../mutants/variations.ts';

const { rows } = loadRequirements();

/** Races on an account that holds a unit of the raced offer. `inList` changes the list that is read before the race. */
async function race(inList: (listed: { id: string }[]) => object | undefined) {
  const held = variations.find(({ id }) => id === 'account-holds-a-unit');
  if (held?.behave === undefined) throw new Error('there is no such account');
  const { behave, ...subject } = held;
  const changed: Subject['behave'] = (rules, _hit, clock) => {
    const usual = behave(rules, clock);
    return {
      ...usual,
      answer(request, given) {
        const answer = usual.answer(request, given);
        if (request.headers['user-agent']?.endsWith(' race/list') !== true) return answer;
        const { instances } = answer.json as { instances: { id: string }[] };
        const json = inList(instances);
        return json === undefined ? { ...answer, status: 403, json: {} } : { ...answer, json };
      },
    };
  };
  const needs = [{ level: 'full', scenarios: ['race'] }] as const;
  const { judged } = await runAgainst({ ...subject, behave: changed }, rows, needs);
  return judged.find(({ requirement }) => requirement.id === 'RACE-UNITS-001');
}

it('a unit that the account holds is counted at the end of a long list', async () => {
  const strangers = Array.from({ length: 4000 }, (_, index) => ({
    id: `stranger-${index}`,
    configuration_id: 'cpu-small',
    x_labels: 'x'.repeat(300),
  }));
  const judged = await race((listed) => ({ instances: [...strangers, ...listed] }));
  expect(judged).toMatchObject({ verdict: 'pass' });
});

it('without the list, nothing is said of units that another instance may hold', async () => {
  expect(await race(() => undefined)).toMatchObject({
    verdict: 'not_tested',
    ruling: { reason: expect.stringMatching(/list before the race could not be read/) },
  });
});
