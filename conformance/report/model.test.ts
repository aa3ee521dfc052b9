import { describe, expect, it } from 'vitest';
import { judge } from '../verdict/judge.ts';
import { toBadge } from './badge.ts';
import { toHtml } from './html/html.ts';
import { toJson, toReport } from './model.ts';
import type { ReportCheck } from './report.ts';
import {
  greenReport,
  reportOf,
  sampleBasis,
  sampleChecks,
  sampleExchange,
  sampleRecords,
  sampleReport,
  sampleRequirements,
  sampleRun,
} from './sample.fixture.ts';
import { toTerminal } from './terminal/terminal.ts';

function check(id: string, report = sampleReport): ReportCheck {
  const found = report.checks.find((one) => one.id === id);
  if (found === undefined) throw new Error(`${id} is not in the report`);
  return found;
}

it('lists every requirement with a verdict and a reason', () => {
  expect(sampleReport.checks.map(({ id }) => id)).toEqual(sampleRequirements.map(({ id }) => id));
  expect(sampleReport.checks.filter(({ reason }) => reason === '')).toEqual([]);
  const total = Object.values(sampleReport.counts).reduce((sum, count) => sum + count, 0);
  expect(total).toBe(sampleRequirements.length);
});

it('is the same to the byte for the same transcript', () => {
  const parts = [sampleRequirements, sampleChecks()] as const;
  const twice = [0, 1].map(() => toReport(sampleRecords, judge(sampleRecords, ...parts), sampleBasis));
  expect(toJson(twice[0] ?? greenReport)).toBe(toJson(twice[1] ?? sampleReport));
});

it('says why the outcome is what it is', () => {
  expect(sampleReport).toMatchObject({
    outcome: 'NON-CONFORMANT',
    why: '5 of 13 checks failed, and 2 more could not be made',
  });
  expect(greenReport).toMatchObject({
    outcome: 'CONFORMANT',
    why: 'all 15 checks of level lifecycle passed',
    exit_code: 0,
  });
});

const run = sampleRun();
const end = { kind: 'end', at: 5000, reason: 'completed' } as const;
const lone = sampleExchange({ n: 1, at: 1, step: 'create/primary', path: '/instances' });

it.each([
  ['a run that was cut off', [run], {}, 'the transcript ends in the middle of the run'],
  [
    'an interruption',
    [run, { ...end, reason: 'interrupted', detail: 'it was interrupted' } as const],
    {},
    'the run was interrupted',
  ],
  [
    'time that ran out',
    [run, { ...end, reason: 'out of time', detail: '--max-minutes 30 are over' } as const],
    {},
    'the run was out of time: --max-minutes 30 are over',
  ],
  [
    'a fault of the suite, without its stack',
    [run, { ...end, reason: 'fault of the suite', detail: 'TypeError: no\n    at x.ts:1' } as const],
    {},
    'the run met a fault of the suite, which says nothing about the target: TypeError: no',
  ],
  [
    'a selection',
    [sampleRun({ only: ['INS-404-001', 'WIRE-JSON-001'] }), end],
    {},
    'only 2 of 21 checks made, as selected (--only, --rerun-failed)',
  ],
  [
    'checks that could not be made',
    [run, end],
    { 'INS-404-001': { verdict: 'not_tested', reason: 'nothing was polled' } } as const,
    '1 check could not be made: INS-404-001',
  ],
])('says of %s why it is INCOMPLETE', (_, records, found, why) => {
  const report = reportOf(records, sampleChecks(found));
  expect(report).toMatchObject({ outcome: 'INCOMPLETE', why });
  expect(report.exit_code).not.toBe(0);
});

it('is never CONFORMANT when no check was made', () => {
  const none = sampleRequirements
    .flatMap(({ checks = [] }) => checks)
    .map((id) => [
      id,
      { verdict: 'not_applicable', capability: 'all of it', reason: 'it has nothing' } as const,
    ]);
  const report = reportOf([run, end], sampleChecks(Object.fromEntries(none)));
  expect(report).toMatchObject({ outcome: 'INCOMPLETE', why: 'no check was made', exit_code: 2 });
});

it('explains a failure: what, how often, when, why, and what to send again', () => {
  const failed = check('INS-404-001');
  expect(failed).toMatchObject({
    verdict: 'fail',
    reason:
      '3 of 40, first at +1 min 16 s: expected 200 with the instance; got 404 not_found; the instance had read PROVISIONING 10.1 s before',
    seen: { wrong: 3, of: 40 },
    problems: [
      { at_ms: 75_700, at: '2026-03-02T09:31:15.700Z', shown: { exchange: 17 } },
      { shown: { exchange: 31 } },
      { shown: { exchange: 32 } },
    ],
  });
  expect(failed.cause).toContain('read replica');
  expect(sampleReport.exchanges.find(({ n }) => n === 17)).toMatchObject({
    method: 'GET',
    path: '/instances/i-9f31c2?region=eu-north',
    status: 404,
    request_id: '5f0c1f6e-0000-4000-8000-000000000017',
    user_agent: 'berth-conformance/0.1.0 run/7k2p online/read',
    curl: expect.stringMatching(/^curl .*\/v1\/instances\/i-9f31c2.*Bearer \$BERTH_API_KEY"$/),
  });
});

it('shows what was seen of the instance that a problem is about, reads of one status in one row', () => {
  const [trace] = check('INS-404-001').traces ?? [];
  expect(trace).toMatchObject({ instance_id: 'i-9f31c2', earlier: 0, later: 0 });
  expect(
    trace?.rows.map(({ status, by, times, is_problem }) => [status, by.join(), times, is_problem]),
  ).toEqual([
    ['PROVISIONING', 'create', 1, undefined],
    ['PROVISIONING', 'read', 7, undefined],
    ['404', 'read', 1, true],
    ['PROVISIONING', 'read', 13, undefined],
    ['404', 'read', 2, true],
    ['PROVISIONING', 'read', 2, undefined],
    ['ONLINE', 'read', 15, undefined],
    ['STOPPING', 'stop', 1, undefined],
    ['PROVISIONING', 'read', 1, undefined],
    ['DESTROYING', 'delete', 1, undefined],
  ]);
  expect(check('SSH-LOGIN-001').traces).toHaveLength(1);
  expect(check('CFG-FIELDS-001').traces).toBeUndefined();
});

it('keeps of a long trace the rows about the problem', () => {
  const flapping = Array.from({ length: 200 }, (_, index) =>
    sampleExchange({
      n: 100 + index,
      at: index,
      step: 'online/read',
      path: '/instances/i-9f31c2',
      answer: { id: 'i-9f31c2', status: index % 2 === 0 ? 'ONLINE' : 'STOPPED' },
    }),
  );
  const resources = sampleRecords.filter(({ kind }) => kind === 'resource');
  const problem = { expected: 'a', actual: 'b', shown: flapping[50] ?? lone };
  const report = reportOf(
    [run, ...flapping, ...resources, end],
    sampleChecks({
      'TRACE-PATH-001': { verdict: 'fail', of: 200, problems: [problem] },
    }),
  );
  const [trace] = check('TRACE-PATH-001', report).traces ?? [];
  expect(trace).toMatchObject({ earlier: 40, later: 140 });
  expect(trace?.rows.filter((row) => row.is_problem)).toMatchObject([{ from_ms: 50_000 }]);
});

it('keeps the first problems of many, and cuts what is long', () => {
  const many = check('CFG-FIELDS-001');
  expect(many.problems).toHaveLength(5);
  expect(many.more_problems).toBe(4);
  const [, long] = check('ERR-ENVELOPE-001').problems ?? [];
  expect(long?.actual).toHaveLength(600 + '… (4406 more characters)'.length);
  const page = sampleReport.exchanges.find(({ n }) => n === 60);
  expect(page?.answer_body?.text).toHaveLength(4096);
  expect(page?.answer_body?.more).toBeGreaterThan(15_000);
});

it('names for a check that passed the exchanges that prove it', () => {
  expect(check('WIRE-JSON-001').proof).toEqual([{ exchange: 4 }, { exchange: 63 }]);
  const referred = sampleReport.exchanges.map(({ n }) => n);
  expect(referred).toEqual(referred.toSorted((a, b) => a - b));
  expect(referred).toContain(63);
});

it('says of what is not applicable which capability is absent, and of its tier that it is', () => {
  expect(check('VOL-CREATE-001')).toMatchObject({ verdict: 'not_applicable', capability: 'volumes' });
  expect(sampleReport.tiers.map(({ tier, state }) => [tier, state])).toEqual([
    ['compute', 'non-conformant'],
    ['storage', 'absent'],
    ['token', 'absent'],
  ]);
  expect(greenReport.tiers[0]).toMatchObject({ tier: 'compute', state: 'conformant' });
});

it('adds up what was made, and takes what was refused for free', () => {
  expect(greenReport.resources).toMatchObject([
    { entry: 1, state: 'gone', lifetime_ms: 428_010, estimated_usd: 0.040423 },
  ]);
  expect(greenReport.cost_usd).toBe(0.040423);
  expect(sampleReport.resources.find(({ entry }) => entry === 2)).not.toHaveProperty('estimated_usd');
  expect(sampleReport.unpriced_resources).toBe(0);
});

it('names what may still run, with the command that destroys it, and says so with the exit code', () => {
  expect(sampleReport.exit_code).toBe(5);
  expect(sampleReport.sweep_command).toBe('berth conformance sweep');
  const [made, unknown] = sampleReport.leftovers;
  expect(made?.command).toMatch(
    /^curl .*-X DELETE .*\/v1\/instances\/i-9f31c2\?region=eu-north' -H "authorization: Bearer \$BERTH_API_KEY"$/,
  );
  expect(unknown?.how).toContain('whose name begins with berth-conf-7k2p-003');
  expect(greenReport).toMatchObject({ leftovers: [], exit_code: 0 });
  expect(greenReport).not.toHaveProperty('sweep_command');
});

it('says when it was judged by other requirements than those of the run', () => {
  expect(sampleReport).not.toHaveProperty('run_requirements_digest');
  const older = reportOf([sampleRun({ requirements: 'old' }), end]);
  expect(older).toMatchObject({ requirements_digest: sampleBasis.digest, run_requirements_digest: 'old' });
});

describe('what a run was not asked to test', () => {
  const none = (capability: string) =>
    ({ verdict: 'not_applicable', capability, reason: 'it was not given' }) as const;
  const checks = sampleChecks({
    'VOL-CREATE-001': none('a key of another account'),
    'TOK-EXPIRES-001': none('an offer of known size (--race OFFER=UNITS)'),
    'VOL-LOCATION-001': none('volumes'),
  });
  const report = reportOf([run, end], checks);

  it('stands apart from what does not apply, in the rows, the counts and the features', () => {
    expect(check('VOL-CREATE-001', report).verdict).toBe('not_asked');
    expect(report.counts).toMatchObject({ not_asked: 2, not_applicable: 1 });
    expect(report).toMatchObject({ outcome: 'CONFORMANT' });
    expect(report.features).toEqual([
      { feature: 'one that is made', state: 'supported' },
      { feature: 'access tokens', state: 'not asked' },
      { feature: 'volumes', state: 'not supported' },
    ]);
  });

  it('is in the first lines, in the badge and on the page', () => {
    const left = 'another account (BERTH_OTHER_ACCOUNT_KEY)';
    const lines = toTerminal(report, { color: false, width: 200 }).split('\n');
    expect(lines[0]).toMatch(/^CONFORMANT: /);
    expect(lines[1]).toBe(`NOT ASKED: overselling (--race OFFER=UNITS), ${left}`);
    expect(toBadge(report)).toContain('conformant, lifecycle, 2 not asked</title>');
    expect(toBadge(greenReport)).toContain('conformant, lifecycle</title>');
    expect(toHtml(report)).toContain(left);
  });

  it('applies where the run was asked', () => {
    const race = { ...run.settings, race: { offer: 'a', units: 2 } };
    const asked = reportOf([sampleRun({ settings: race }), end], checks);
    expect(check('TOK-EXPIRES-001', asked).verdict).toBe('not_applicable');
  });
});

it('names the status that the instance had read, where an answer does not show it', () => {
  const [problem] = check('SSH-LOGIN-001').problems ?? [];
  expect(problem?.actual).toMatch(/; the instance had read (PROVISIONING|ONLINE) .* before$/);
});
