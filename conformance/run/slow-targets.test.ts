import { expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { Evidence } from '../evidence/evidence.ts';
import { refusal } from '../mutants/deviate.ts';
import { reddened, runAgainst, type Subject } from '../mutants/harness.ts';
import { countVerdicts, outcomeOf } from '../verdict/outcome.ts';

const { rows } = loadRequirements();

it('an instance that reads STOPPING for ever fails nothing, and certifies nothing', async () => {
  const endless: Subject['behave'] = (rules) => ({ ...rules, stopMs: () => 1e12 });
  const trial = await runAgainst({ behave: endless }, rows, [
    { level: 'lifecycle', scenarios: ['start', 'destroy'] },
  ]);
  const { records, judged } = trial;
  expect(reddened(trial)).toEqual([]);
  const end = judged.find(({ requirement }) => requirement.id === 'STOP-END-001');
  expect(end?.ruling).toMatchObject({
    verdict: 'not_tested',
    reason: expect.stringContaining('still STOPPING'),
  });
  const [begun, ended] = [records[0], records.at(-1)];
  if (begun?.kind !== 'run' || ended?.kind !== 'end') throw new Error('a run begins and ends');
  expect(outcomeOf(begun, ended, countVerdicts(judged))).toBe('INCOMPLETE');
});

it('what a create made that was answered 500 is found beside the scenarios, not at the end', async () => {
  const lateAndUnclear: Subject['behave'] = (rules, hit, clock) => ({
    ...rules,
    validateCreate: (body, context) =>
      (body as Record<string, unknown>)['root_disk_size_gb'] === 'large'
        ? []
        : rules.validateCreate(body, context),
    answer(request, answer) {
      const usual = rules.answer(request, answer);
      const isIt = request.route === 'POST /instances' && request.text.includes('"large"');
      if (!isIt || usual.status !== 201) return usual;
      hit();
      return refusal(500, 'internal');
    },
    isListed: (instance) => instance.id !== 'i-00001' || clock.wall() - instance.createdAtMs > 15_000,
  });
  const { records, hits, leaked } = await runAgainst({ behave: lateAndUnclear }, rows, [
    { level: 'lifecycle', scenarios: ['refusals', 'stop'] },
  ]);
  expect(hits).toBe(1);
  expect(leaked).toEqual([]);
  const found = records.findIndex((record) => record.kind === 'resource' && record.id === 'i-00001');
  const stopped = records.findIndex((record) => record.kind === 'exchange' && record.step === 'stop/post');
  expect(found).toBeGreaterThan(0);
  expect(found).toBeLessThan(stopped);
});

it.each([
  [
    'GET /instances/{id} takes',
    (route: string | undefined) => route === 'GET /instances/{instanceId}',
    235_000,
  ],
  ['every GET takes', (route: string | undefined) => route?.startsWith('GET ') === true, 275_000],
])('%s 4 s: the verdict is there before the rest is asked for', async (_what, isIt, limitMs) => {
  const slow: Subject['behave'] = (rules) => ({
    ...rules,
    answerDelayMs: (request) => (isIt(request.route) ? 4000 : rules.answerDelayMs(request)),
  });
  const trial = await runAgainst({ behave: slow, run: { pollIntervalMs: 200 } }, rows);
  expect(reddened(trial)).toEqual(['LAT-GET-001']);
  expect(trial.tookMs).toBeLessThan(limitMs);
  expect(trial.leaked).toEqual([]);
  const destroyed = trial.judged.find(({ requirement }) => requirement.id === 'DEL-200-001');
  expect(destroyed?.ruling).toMatchObject({
    verdict: 'not_tested',
    reason: expect.stringContaining('LAT-GET-001'),
  });
});

it('a machine that boots while its target answers slowly may be stopped then', async () => {
  const slow: Subject['behave'] = (rules) => ({
    ...rules,
    answerDelayMs: (request) => (request.route === 'GET /instances/{instanceId}' ? 6000 : 0),
    bootMs: () => 33_000,
    mayStart: () => false,
  });
  const { records, judged } = await runAgainst({ behave: slow, run: { pollIntervalMs: 200 } }, rows, [
    { level: 'lifecycle', scenarios: ['boot'] },
  ]);
  // Before and after a second machine has booted, and shown how fast that is.
  const isOfBoot = (record: (typeof records)[number]) => 'step' in record && record.step === 'boot/create';
  const evidence = new Evidence(records.slice(0, records.findLastIndex(isOfBoot) + 1));
  expect(evidence.steps('boot/stop')).toMatchObject([{ answer: { status: 200 } }]);
  const finding = CHECKS.find(({ id }) => id === 'STOP-409-001')?.judge(evidence);
  expect(finding).toMatchObject({ verdict: 'not_applicable' });
  const ruling = judged.find(({ requirement }) => requirement.id === 'STOP-409-001')?.ruling;
  expect(ruling).toMatchObject({ verdict: 'not_applicable' });
});
