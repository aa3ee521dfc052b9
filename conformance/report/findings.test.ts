import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { Evidence } from '../evidence/evidence.ts';
import { runAgainst, type Subject, type Trial } from '../mutants/harness.ts';
import { allMutants } from '../mutants/mutants.ts';
import type { WireAnswer } from '../mutants/reference/exchange.ts';
import { causesOf, toFindings } from './findings.ts';

const { rows } = loadRequirements();

function findingsOf({ records, judged }: Trial) {
  const { instances } = new Evidence(records);
  return toFindings(judged, causesOf(judged, instances), instances);
}

/** No answer has a content type, and no error has an envelope, so an error has both faults. */
const careless: Subject['behave'] = (rules) => ({
  ...rules,
  answer(request, answer) {
    const { status, json } = rules.answer(request, answer);
    return { status, headers: {}, ...(json !== undefined && { json: status < 400 ? json : { no: 1 } }) };
  },
});

it('a check is under the fault that all its places have, also where some have another one too', async () => {
  const trial = await runAgainst({ behave: careless }, rows, [
    { level: 'read-only', scenarios: ['list', 'unknown'] },
  ]);
  const findingOf = (id: string) => findingsOf(trial).find(({ checks }) => checks.includes(id))?.title;
  expect(findingOf('WIRE-JSON-001')).toBe('bodies are not said to be application/json');
  expect(findingOf('ERR-ENVELOPE-001')).toBe('errors are not {"error": {"code": "…", "message": "…"}}');
});

it('describes the fault of one check by the observation', async () => {
  const unlisted: Subject['behave'] = (rules) => ({ ...rules, isListed: () => false });
  const trial = await runAgainst({ behave: unlisted }, rows, [{ level: 'lifecycle', scenarios: ['online'] }]);
  expect(findingsOf(trial)[0]?.title).toMatch(/^GET \/instances: .*; expected: /);
});

it('403 in place of 401 is one cause', async () => {
  const forbidding: Subject['behave'] = (rules) => ({
    ...rules,
    answer(request, answer) {
      const usual = rules.answer(request, answer);
      return usual.status === 401 ? { ...usual, status: 403 } : usual;
    },
  });
  const trial = await runAgainst({ behave: forbidding }, rows, [
    { level: 'lifecycle', scenarios: ['online', 'unauthenticated'] },
  ]);
  const [first] = findingsOf(trial);
  expect(first?.title).toBe('requests without a good credential are answered 403, not 401');
  expect(first?.checks).toEqual(expect.arrayContaining(['AUTH-401-001', 'AUTH-401-004', 'AUTH-LIVE-001']));
});

/** Every second read of an instance shows what another read saw at least `ageMs` ago. */
function aged(ageMs: number, isAged = (count: number): boolean => count % 2 === 0): Subject['behave'] {
  return (rules, hit, clock) => {
    const seen: { path: string; at: number; answer: WireAnswer }[] = [];
    return {
      ...rules,
      answer(request, answer) {
        const usual = rules.answer(request, answer);
        if (request.route !== 'GET /instances/{instanceId}' || ![200, 404].includes(usual.status))
          return usual;
        const { path } = request;
        seen.push({ path, at: clock.now(), answer: structuredClone(usual) });
        const old = seen.findLast((one) => one.path === path && one.at <= clock.now() - ageMs);
        if (!isAged(seen.length) || old === undefined || old.answer.status !== 200) return usual;
        hit();
        return old.answer;
      },
    };
  };
}

const LIFE = [{ level: 'lifecycle', scenarios: ['stop', 'start', 'destroy'] }] as const;

it('reads of a worker that is behind come first, with what follows from them and nothing else', async () => {
  const trial = await runAgainst({ behave: aged(20_000) }, rows, LIFE);
  const [first, ...others] = findingsOf(trial);
  expect(first?.title).toBe('GET /instances/{id} goes back to an older status: ONLINE, PROVISIONING, ONLINE');
  expect(first?.checks).toEqual(['TRACE-PATH-001', 'INS-404-002', 'TRACE-FINAL-001', 'TRACE-FRESH-001']);
  // What a request without a good credential could have done stays a finding of its own.
  expect(others.map(({ checks }) => checks[0])).toContain('AUTH-LIVE-002');
});

function mutantOf(name: string): Subject {
  const mutant = allMutants.find(({ id }) => id === name);
  if (mutant === undefined) throw new Error(`${name} is no mutant`);
  return mutant;
}

const EARLY = [{ level: 'full', scenarios: ['early-delete', 'destroy'] }] as const;

it('an instance that is back after it was destroyed is not taken for a stale read', async () => {
  const [first] = findingsOf(await runAgainst(mutantOf('delete-while-provisioning-is-undone'), rows, EARLY));
  expect(first).toMatchObject({
    title: 'an instance that was destroyed is back',
    checks: expect.arrayContaining(['DEL-STAYS-001', 'INS-404-005', 'TRACE-FINAL-001']),
  });
});

it('an effect that is shown late or never is not taken for a stale read', async () => {
  for (const [name, needs] of [
    ['reads-lag-by-a-minute', LIFE],
    ['early-delete-is-forgotten', EARLY],
  ] as const) {
    const found = findingsOf(await runAgainst(mutantOf(name), rows, needs));
    expect(found.map(({ title }) => title)).not.toContainEqual(expect.stringContaining('goes back'));
    expect(found.flatMap(({ checks }) => checks)).toContain('TRACE-FRESH-001');
  }
});

it('errors with status 200 are not taken for accepted requests of another account', async () => {
  const lenient: Subject['behave'] = (rules) => ({
    ...rules,
    answer(request, answer) {
      const usual = rules.answer(request, answer);
      return usual.status === 404 ? { ...usual, status: 200 } : usual;
    },
  });
  const trial = await runAgainst({ behave: lenient }, rows, [
    { level: 'lifecycle', scenarios: ['other-account', 'unknown'] },
  ]);
  const [first] = findingsOf(trial);
  expect(first?.title).toBe('errors are answered with a 2xx status');
  expect(first?.checks).toEqual(expect.arrayContaining(['WIRE-STATUS-001', 'KEYS-ACCOUNT-001']));
});
