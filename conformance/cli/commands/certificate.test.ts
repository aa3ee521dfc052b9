import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Report } from '../../report/report.ts';
import { referenceParts, runCli, temporaryFolder } from '../cli.fixture.ts';

const folder = temporaryFolder();
const [json, transcript, badge] = ['report.json', 'run.ndjson', 'badge.svg'].map(folder.file) as [
  string,
  string,
  string,
];

/** Writes a key pair, and returns the paths. */
function writeKeys(name: string): { secret: string; open: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const [secret, open] = [folder.file(`${name}.pem`), folder.file(`${name}.pub`)];
  writeFileSync(secret, privateKey.export({ format: 'pem', type: 'pkcs8' }));
  writeFileSync(open, publicKey.export({ format: 'pem', type: 'spki' }));
  return { secret, open };
}

const own = writeKeys('own');
const other = writeKeys('other');

beforeAll(async () => {
  const target = referenceParts();
  const files = ['--json', json, '--transcript', transcript, '--badge', badge, '--sign', own.secret];
  const { code, err } = await runCli(
    [target.baseUrl, '--level', 'read-only', '--state-dir', folder.path, ...files],
    {
      parts: target.parts,
    },
  );
  expect(code, err).toBe(0);
  await target[Symbol.asyncDispose]();
});
afterAll(() => folder[Symbol.dispose]());

type Editable = Report & Record<string, unknown>;

function edited(change: (report: Editable) => void): string {
  const report = JSON.parse(readFileSync(json, 'utf8')) as Editable;
  change(report);
  const path = folder.file('edited.json');
  writeFileSync(path, JSON.stringify(report));
  return path;
}

describe('a signed report', () => {
  it('is verified with its key and its transcript', async () => {
    const { code, out } = await runCli(['verify', json, '--key', own.open, '--transcript', transcript]);
    expect(code).toBe(0);
    expect(out).toMatch(/^The report is what was signed: CONFORMANT at level read-only/);
    expect(out).toContain('leads to the same verdicts');
  });

  it('may be written anew in another layout and order', async () => {
    const path = edited((report) => {
      const { format, ...rest } = report;
      for (const name of Object.keys(report)) delete report[name];
      Object.assign(report, rest, { format });
    });
    expect((await runCli(['verify', path, '--key', own.open])).code).toBe(0);
  });

  it.each<[string, (report: Editable) => void]>([
    ['a verdict', (report) => Object.assign(report.checks[0] ?? {}, { verdict: 'not_applicable' })],
    ['the outcome', (report) => Object.assign(report, { outcome: 'INCOMPLETE' })],
    ['the level', (report) => Object.assign(report, { level: 'full' })],
    ['the target', (report) => Object.assign(report, { base_url: 'https://other.example/v1' })],
    ['the time', (report) => Object.assign(report, { started_at: '2030-01-01T00:00:00.000Z' })],
    ['a check that is left out', (report) => void report.checks.pop()],
    ['the order of checks', (report) => void report.checks.reverse()],
    ['the requirements', (report) => Object.assign(report, { requirements_digest: '0'.repeat(64) })],
    [
      'the transcript',
      (report) => Object.assign(report.signature ?? {}, { transcript_sha256: '0'.repeat(64) }),
    ],
    ['a field more', (report) => Object.assign(report, { counter_signed: true })],
    ['a number as a text', (report) => Object.assign(report, { exit_code: '0' })],
    [
      'a verdict that is taken out',
      (report) => Object.assign(report.checks[0] ?? {}, { verdict: { $redacted: 'a'.repeat(64) } }),
    ],
    ['no signature', (report) => void Reflect.deleteProperty(report, 'signature')],
    ['a signature cut short', (report) => Object.assign(report.signature ?? {}, { value: 'AAAA' })],
  ])('is refused with another %s', async (_what, change) => {
    const { code, err } = await runCli(['verify', edited(change), '--key', own.open]);
    expect(code).toBe(1);
    expect(err).toContain('REFUSED');
  });

  it('of another key is refused, and so is another transcript', async () => {
    expect((await runCli(['verify', json, '--key', other.open])).err).toContain('signed with another key');
    const path = folder.file('edited.ndjson');
    writeFileSync(path, readFileSync(transcript, 'utf8').replace('"status":200', '"status":201'));
    const { err } = await runCli(['verify', json, '--transcript', path]);
    expect(err).toContain('is not the transcript');
  });

  it('stays good when what says nothing of the verdict is taken out, and is refused without a verdict', async () => {
    const out = folder.file('redacted.json');
    expect((await runCli(['redact', json, '/base_url', '/exchanges/0/path', '--out', out])).code).toBe(0);
    expect(readFileSync(out, 'utf8')).not.toContain('"base_url": "https');
    const verified = await runCli(['verify', out, '--key', own.open]);
    expect(verified).toMatchObject({ code: 0, out: expect.stringContaining('Taken out since: /base_url') });
    const hidden = await runCli(['redact', json, '/checks/0/verdict', '--out', out]);
    expect(hidden.code).toBe(3);
  });

  it('has a badge beside it', () => {
    expect(readFileSync(badge, 'utf8')).toMatch(/^<svg .*conformant, read-only<\/title>/s);
  });
});

it('is not signed with a key of another kind, and nothing is bought then', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const path = folder.file('ec.pem');
  writeFileSync(path, privateKey.export({ format: 'pem', type: 'pkcs8' }));
  const { code, err } = await runCli([
    'https://x.example/v1',
    '--json',
    folder.file('x.json'),
    '--sign',
    path,
  ]);
  expect(code).toBe(3);
  expect(err).toContain('is not of Ed25519');
});

it('compare lists checks that became red, green or slower', async () => {
  const now = edited((report) => {
    Object.assign(report.checks[0] ?? {}, { verdict: 'fail', reason: 'expected 200; got 500' });
    report.timings.push({ what: 'to ONLINE', ms: 4000 });
  });
  const before = folder.file('before.json');
  const report = JSON.parse(readFileSync(json, 'utf8')) as Editable;
  report.timings.push({ what: 'to ONLINE', ms: 1000 });
  Object.assign(report.checks[1] ?? {}, { verdict: 'fail' });
  writeFileSync(before, JSON.stringify(report));
  const { code, out } = await runCli(['compare', before, now]);
  expect(code).toBe(1);
  expect(out).toContain(`BECAME RED (1)\n  ${report.checks[0]?.id}: expected 200; got 500`);
  expect(out).toContain(`BECAME GREEN (1)\n  ${report.checks[1]?.id}`);
  expect(out).toContain('SLOWER (1)\n  to ONLINE: 1 s → 4 s');
  expect((await runCli(['compare', json, json])).out).toContain('Nothing became red, green or slower.');
});
