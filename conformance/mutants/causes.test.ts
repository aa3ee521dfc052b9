import { expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { toReport } from '../report/model.ts';
import type { ReportCheck } from '../report/report.ts';
import { toTerminal } from '../report/terminal/terminal.ts';
import type { Exchange, SshRecord, TranscriptRecord } from '../transcript/records.ts';
import { judge } from '../verdict/judge.ts';
import { onRule } from './deviate.ts';
import { runAgainst, type Trial } from './harness.ts';

const requirements = loadRequirements();
const NEEDS = [{ level: 'lifecycle', scenarios: ['stop'] }] as const;

const reportOf = (records: readonly TranscriptRecord[]) =>
  toReport(records, judge(records, requirements.rows, CHECKS), requirements);

function rowOf(records: readonly TranscriptRecord[], wanted: string): ReportCheck | undefined {
  return reportOf(records).checks.find(({ id }) => id === wanted);
}

let usual: Promise<Trial> | undefined;
/** The records of a run against the reference, with some of them changed. */
async function recordsWith(
  change: (record: Exchange | SshRecord) => TranscriptRecord | undefined,
): Promise<TranscriptRecord[]> {
  usual ??= runAgainst({}, requirements.rows, NEEDS);
  return (await usual).records.map((record) =>
    record.kind === 'exchange' || record.kind === 'ssh' ? (change(record) ?? record) : record,
  );
}

it("a boot that ends in ERROR is not tested, with the instance's own text", async () => {
  const { records } = await runAgainst(
    {
      behave: (rules, hit) => ({
        ...onRule('statusAfter', (_usual, _instance, next) => (next === 'ONLINE' ? 'ERROR' : undefined))(
          rules,
          hit,
          undefined as never,
        ),
        errorText: () => 'no host has room',
      }),
    },
    requirements.rows,
    NEEDS,
  );
  expect(rowOf(records, 'INS-READY-001')).toMatchObject({
    verdict: 'not_tested',
    reason: 'the machine failed, which the contract allows: ERROR, no host has room',
  });
});

/** A machine that is never ONLINE, in a run that waits so long. */
async function neverOnline(readyTimeoutMs: number) {
  const { records } = await runAgainst(
    {
      behave: (rules, hit) => onRule('bootMs', () => 1e12)(rules, hit, undefined as never),
      run: { readyTimeoutMs },
    },
    requirements.rows,
    NEEDS,
  );
  const report = toReport(records, judge(records, requirements.rows, CHECKS), requirements);
  const text = toTerminal(report, { color: false, width: 10_000 });
  return { report, untested: text.split('\n').filter((line) => line.includes('did not come ONLINE')) };
}

it('a machine that is not ONLINE after a minute is not tested, with the option that helps, in one line', async () => {
  const { report, untested } = await neverOnline(60_000);
  expect(report.outcome).toBe('INCOMPLETE');
  expect(report.checks.find(({ id }) => id === 'INS-READY-001')).toMatchObject({
    verdict: 'not_tested',
    reason: expect.stringContaining('wait longer with --ready-timeout-s'),
  });
  expect(report.why).toMatch(
    /could not be made, \d\d of them because the instance did not come ONLINE: .*--ready-timeout-s 600/,
  );
  expect(untested.slice(1)).toEqual([
    expect.stringMatching(/SSH-LIVE-001, .*STOP-END-001, .*--ready-timeout-s 600/),
  ]);
});

it('a machine that is not ONLINE after ten minutes fails, and what follows from it is one line', async () => {
  const { report, untested } = await neverOnline(600_000);
  const failed = report.checks.filter(({ verdict }) => verdict === 'fail');
  expect(failed.map(({ id }) => id)).toEqual(['INS-READY-001']);
  expect(failed[0]?.problems?.[0]?.actual).toContain('still PROVISIONING after 10 min');
  expect(untested).toEqual([expect.stringMatching(/SSH-LIVE-001, .*it was still booting after 600 s$/)]);
});

it('an SSH server without a common algorithm is not tested, and did speak SSH', async () => {
  const records = await recordsWith((record) =>
    record.kind === 'ssh'
      ? { ...record, rung: 'handshake', message: 'no common algorithms with the server: no matching cipher' }
      : undefined,
  );
  for (const id of ['SSH-LIVE-001', 'SSH-KEYS-001']) {
    const row = rowOf(records, id);
    expect([row?.verdict, row?.reason]).toEqual([
      'not_tested',
      expect.stringContaining('no matching cipher'),
    ]);
  }
});

it('a loopback address behind which nothing answers is said to be one', async () => {
  const refused = 'connection refused by 127.0.0.1:22';
  const records = await recordsWith((record) =>
    record.kind === 'ssh' ? { ...record, host: '127.0.0.1', rung: 'connect', message: refused } : undefined,
  );
  const report = reportOf(records);
  expect(report.findings.map(({ title }) => title)).toContain(
    'public_ip is 127.0.0.1, and nothing answers there',
  );
  expect(rowOf(records, 'SSH-LIVE-001')).toMatchObject({
    problems: expect.arrayContaining([
      expect.objectContaining({ actual: expect.stringMatching(/; the instance had read ONLINE .* before$/) }),
    ]),
    cause: expect.stringMatching(/^A loopback address is the own computer of each client/),
  });
});

it('the cause of a failure is that of its answer: an exception, where the answer is 500', async () => {
  const records = await recordsWith((record) => {
    if (record.kind !== 'exchange' || record.step !== 'stop/post' || record.answer === undefined)
      return undefined;
    const body = '{"error": {"code": "internal", "message": "it failed"}}';
    return { ...record, answer: { ...record.answer, status: 500, body } };
  });
  const causes = ['STOP-200-001', 'ERR-5XX-001'].map((id) => rowOf(records, id)?.cause);
  expect(causes[0]).toBe(causes[1]);
});

it('the stop of an instance that had read OFFLINE is not tested', async () => {
  const records = await recordsWith((record) => {
    if (record.kind !== 'exchange' || record.answer === undefined) return undefined;
    if (record.step === 'stop/post') return { ...record, answer: { ...record.answer, status: 409 } };
    if (record.step !== 'stop/after-wrong-credential') return undefined;
    const body = JSON.stringify({ ...JSON.parse(record.answer.body), status: 'OFFLINE' });
    return { ...record, answer: { ...record.answer, body } };
  });
  expect(rowOf(records, 'STOP-200-001')).toMatchObject({
    verdict: 'not_tested',
    reason: 'the instance read OFFLINE right before it was asked to stop',
  });
});
