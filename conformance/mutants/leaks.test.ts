import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { Evidence } from '../evidence/evidence.ts';
import { countVerdicts, EXIT, exitCodeOf, leftovers, outcomeOf } from '../verdict/outcome.ts';
import { onAnswers, refusal } from './deviate.ts';
import { runAgainst, type Subject } from './harness.ts';

const LIST = 'GET /instances';
const GET = 'GET /instances/{instanceId}';
const CREATE = 'POST /instances';
const DELETE = 'DELETE /instances/{instanceId}';
const CRASH = refusal(500, 'internal');
/** Creates that are refused, one that is not, a volume, and the end of both. */
const NEEDS = [{ level: 'full', scenarios: ['refusals', 'volumes', 'destroy'] }] as const;
const { rows } = loadRequirements();

/** Servers that create machines and deny it, or keep machines and report them as gone. */
const liars: Record<string, Subject> = {
  'answers a create with 504, makes it, and lists nothing that can be read': {
    behave: (rules) => ({
      ...rules,
      answer(request, answer) {
        if (request.route === CREATE && answer.status === 201) return refusal(504, 'gateway_timeout');
        return request.route === LIST ? { ...answer, json: { data: [] } } : rules.answer(request, answer);
      },
    }),
  },
  'takes a DELETE on, reads 404, and goes on listing it ONLINE': {
    behave: (rules) => {
      const deleted = new Set<string>();
      return {
        ...rules,
        takesEffect(instance, operation) {
          if (operation === 'delete') deleted.add(instance.id);
          return operation !== 'delete';
        },
        answer(request, answer) {
          const id = request.path.split('/').at(-1) ?? '';
          return request.route === GET && deleted.has(id)
            ? refusal(404, 'not_found')
            : rules.answer(request, answer);
        },
      };
    },
  },
  'reads 404 from the beginning, and fails to list': {
    behave: (rules) => ({
      ...rules,
      answer(request, answer) {
        if (request.route === GET) return refusal(404, 'not_found');
        return request.route === LIST ? refusal(500, 'internal') : rules.answer(request, answer);
      },
    }),
  },
  'reads 404 for the first minute': {
    behave: (rules, _hit, clock) => ({
      ...rules,
      isGone: (instance) => clock.wall() - instance.createdAtMs < 60_000 || rules.isGone(instance),
      isListed: (instance) => clock.wall() - instance.createdAtMs >= 60_000,
    }),
  },
};

it.each(Object.entries(liars))('a server that %s hides no machine from the run', async (_what, subject) => {
  const { leaked } = await runAgainst(subject, rows, NEEDS);
  expect(leaked).toEqual([]);
});

it('leaves a machine alone that lets in any key: it may be of another client of the account', async () => {
  const { leaked } = await runAgainst(
    {
      behave: (rules) => ({
        ...rules,
        namesOfTwins: () => ['production'],
        mayLogin: (_instance, { method }) => method === 'publickey',
      }),
    },
    rows,
    NEEDS,
  );
  expect(leaked).not.toEqual([]);
});

it.each<[string, Subject['behave'] & {}]>([
  ['crashes on bad creates', onAnswers([CREATE], ({ status }) => (status === 400 ? CRASH : undefined))],
  [
    'answers a DELETE with 204 and a body',
    onAnswers([DELETE, 'DELETE /volumes/{volumeId}'], (answer) =>
      answer.status < 300 ? { ...answer, status: 204, raw: '{"deleted":true}' } : undefined,
    ),
  ],
])('nothing of a server that %s may still be running: the exit code is 1', async (_what, behave) => {
  const { records, judged } = await runAgainst({ behave }, rows, NEEDS);
  const { run, end, resources } = new Evidence(records);
  if (end === undefined) throw new Error('a run ends');
  const outcome = outcomeOf(run, end, countVerdicts(judged));
  expect(leftovers(resources)).toEqual([]);
  expect(exitCodeOf(outcome, end, [])).toBe(EXIT.nonConformant);
});
