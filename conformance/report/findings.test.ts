import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { runAgainst, type Subject } from '../mutants/harness.ts';
import { toFindings } from './findings.ts';

const { rows } = loadRequirements();

/** No answer has a content type, and no error has an envelope, so an error has both faults. */
const careless: Subject['behave'] = (rules) => ({
  ...rules,
  answer(request, answer) {
    const { status, json } = rules.answer(request, answer);
    return { status, headers: {}, ...(json !== undefined && { json: status < 400 ? json : { no: 1 } }) };
  },
});

it('a check is under the fault that all its places have, also where some have another one too', async () => {
  const { judged } = await runAgainst({ behave: careless }, rows, [
    { level: 'read-only', scenarios: ['list', 'unknown'] },
  ]);
  const findingOf = (id: string) => toFindings(judged).find(({ checks }) => checks.includes(id))?.title;
  expect(findingOf('WIRE-JSON-001')).toBe('bodies are not said to be application/json');
  expect(findingOf('ERR-ENVELOPE-001')).toBe('errors are not {"error": {"code": "…", "message": "…"}}');
});

it('describes the fault of one check by the observation', async () => {
  const unlisted: Subject['behave'] = (rules) => ({ ...rules, isListed: () => false });
  const { judged } = await runAgainst({ behave: unlisted }, rows, [
    { level: 'lifecycle', scenarios: ['online'] },
  ]);
  expect(toFindings(judged)[0]?.title).toMatch(/^GET \/instances: .*; expected: /);
});

it('403 in place of 401 is one cause', async () => {
  const forbidding: Subject['behave'] = (rules) => ({
    ...rules,
    answer(request, answer) {
      const usual = rules.answer(request, answer);
      return usual.status === 401 ? { ...usual, status: 403 } : usual;
    },
  });
  const { judged } = await runAgainst({ behave: forbidding }, rows, [
    { level: 'lifecycle', scenarios: ['online', 'unauthenticated'] },
  ]);
  const [first] = toFindings(judged);
  expect(first?.title).toBe('requests without a good credential are answered 403, not 401');
  expect(first?.checks).toEqual(expect.arrayContaining(['AUTH-401-001', 'AUTH-401-004', 'AUTH-LIVE-001']));
});
