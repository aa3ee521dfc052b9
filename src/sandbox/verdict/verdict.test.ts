import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBench } from '../faults/bench.fixture.ts';
import type { SandboxAccount } from '../parts.ts';
import type { Sandbox } from '../sandbox.ts';
import { runClient } from './clients.fixture.ts';
import { toVerdictJunit } from './junit.ts';
import { type Baseline, judge, type Verdict } from './verdict.ts';
import { summaryOf } from './words.ts';

let sandbox: Sandbox;
let account: SandboxAccount;
/** Two clicks, and no region: two rules fail. */
beforeAll(async () => {
  sandbox = await startBench();
  account = await sandbox.account();
  await runClient(sandbox, account, { clicks: 2, region: undefined });
});
afterAll(() => sandbox.close());

const judged = (...accepted: Baseline['accepted']): Promise<Verdict> =>
  sandbox.verdict({ account: account.name, baseline: { accepted } });
const resultsOf = ({ rules }: Verdict) =>
  Object.fromEntries(rules.flatMap(({ rule, result }) => (result === 'pass' ? [] : [[rule, result]])));
const NOT_TESTED = {
  'keeps-retry-after': 'not_tested',
  'refreshes-token-ahead': 'not_tested',
  'survives-faults': 'not_tested',
};

it('names the failed rules with the sentence and the entries, and says why a rule was not tested', async () => {
  const verdict = await judged();
  expect(resultsOf(verdict)).toEqual({ ...NOT_TESTED, 'creates-once': 'fail', 'sends-region': 'fail' });
  expect(verdict).toMatchObject({
    account: account.name,
    holds: false,
    counts: { pass: 5, fail: 2, accepted: 0, not_tested: 3 },
  });
  const of = (id: string) => verdict.rules.find(({ rule }) => rule === id);
  const creates = await sandbox.control.journal.entries({ operation: 'createInstance' });
  expect(of('creates-once')).toMatchObject({
    cites: expect.stringMatching(/^O: If names must be unique on the platform/),
    findings: [
      {
        message: `the same create made ${creates.map(({ resource }) => resource).join(' and ')}`,
        entries: creates.map(({ number }) => number),
      },
    ],
  });
  expect(of('refreshes-token-ahead')).toMatchObject({
    not_tested: 'no token expired while the client sent requests',
    findings: [],
  });
});

describe('a baseline', () => {
  const region = { rule: 'sends-region', reason: 'one region' } as const;
  const twice = { rule: 'creates-once', reason: 'the button is repaired' } as const;

  it('accepts failures, which are still shown', async () => {
    const verdict = await judged(region, twice);
    expect(verdict).toMatchObject({ holds: true, counts: { fail: 0, accepted: 2 }, no_longer_failing: [] });
    const shown = verdict.rules.find(({ rule }) => rule === 'sends-region');
    expect(shown).toMatchObject({
      result: 'accepted',
      findings: [region, region].map(() => ({ accepted: 'one region' })),
    });
  });

  it('accepts only the failures of its resources', async () => {
    const [first, second] = (await judged()).rules
      .filter(({ rule }) => rule === 'sends-region')
      .flatMap(({ findings }) => findings.map(({ resource = '' }) => resource));
    const one = await judged({ ...region, resources: [first ?? ''] }, twice);
    expect(resultsOf(one)).toMatchObject({ 'sends-region': 'fail', 'creates-once': 'accepted' });
    const both = await judged({ ...region, resources: [first ?? '', second ?? ''] }, twice);
    expect(both.holds).toBe(true);
  });

  it('has its entries named that no longer fail, unless their rule was not tested', async () => {
    const removable = { rule: 'stops-at-404', reason: 'old' } as const;
    const other = { ...region, resources: ['inst-none'] };
    const untested = { rule: 'keeps-retry-after', reason: 'not yet' } as const;
    const never = { rule: 'survives-http-500', reason: 'not yet' } as const;
    const { no_longer_failing: named } = await judged(region, removable, other, untested, never);
    expect(named).toEqual([removable, other]);
  });

  it('is refused with a rule that there is not', async () => {
    await expect(judged({ rule: 'sends-regions', reason: 'x' })).rejects.toThrow('baseline.accepted[0].rule');
    await expect(judged({ rule: 'sends-region', reason: '' })).rejects.toThrow('baseline.accepted[0].reason');
  });
});

it('is the same from the library, the control API and the typed client', async () => {
  const answer = await sandbox.fetch(`/control/verdict?account=${account.name}`, {
    headers: { authorization: `Bearer ${sandbox.controlKey}` },
  });
  const verdict = await judged();
  expect([answer.status, await answer.json()]).toEqual([200, verdict]);
  expect(await sandbox.control.verdict({ account: account.name })).toEqual(verdict);
  expect((await sandbox.fetch('/control/verdict')).status).toBe(401);
  const headers = { authorization: `Bearer ${sandbox.controlKey}` };
  expect((await sandbox.fetch('/control/verdict?acount=me', { headers })).status).toBe(400);
});

it('does not hold if nothing was tested', async () => {
  const verdict = await sandbox.verdict({ account: 'nobody' });
  expect(verdict).toMatchObject({ holds: false, requests: 0, counts: { pass: 0, fail: 0, not_tested: 10 } });
  expect(toVerdictJunit(verdict)).toContain('<failure message="nothing was tested');
});

describe('the reports', () => {
  const accepted = { rule: 'sends-region', reason: 'one <region> & "more" \u202e' } as const;
  const hostile = async (): Promise<Verdict> => {
    const verdict = await judged(accepted, { rule: 'stops-at-404', reason: 'old' });
    for (const { findings } of verdict.rules)
      for (const finding of findings) finding.message += '<script>alert(1)</script>\u0000\u001b';
    return verdict;
  };

  it('JUnit has a failure for each failed rule, and skips what was accepted or not tested', async () => {
    const xml = toVerdictJunit(await hostile());
    expect(xml).toContain('tests="10" failures="1" errors="0" skipped="4"');
    expect(xml.match(/<failure /g)).toHaveLength(1);
    expect(xml.match(/<skipped /g)).toHaveLength(4);
    expect(xml).toMatch(
      /name="creates-once: [^"]*"><failure message="the same create made [^"]*#\d+, #\d+\)"/,
    );
    expect(xml).toContain('accepted: one &lt;region&gt; &amp; &quot;more&quot; \\u202e');
    expect(xml).toContain(
      'The baseline accepts failures of stops-at-404, and there are none: remove that entry.',
    );
    expect(xml).not.toMatch(/<script|(?!\n)[\p{Cc}\p{Cf}]/u);
  });
});

it('says how many requests it could not judge, since the journal dropped them', async () => {
  const entries = await sandbox.control.journal.entries({ account: account.name });
  const verdict = judge({ entries, dropped: 12 }, sandbox.clock.now());
  expect(verdict.dropped).toBe(12);
  expect(summaryOf(verdict)).toMatch(
    / requests\. 12 older requests were not judged: the journal no longer keeps them\.$/,
  );
  expect(summaryOf(await judged())).not.toContain('no longer keeps');
});
