import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256 } from '../../certificate/digest.ts';
import { signReport } from '../../certificate/sign.ts';
import type { Report } from '../../report/report.ts';
import { linked, unlinked } from '../../transcript/chain.fixture.ts';
import type { RunRecord } from '../../transcript/records.ts';
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
  const nonce = ['--nonce', 'market-1'];
  const { code, err } = await runCli(
    [target.baseUrl, '--level', 'read-only', '--state-dir', folder.path, ...files, ...nonce],
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
    expect(out).toMatch(/^CONFORMANT at level read-only, contract .+: https?:/);
    expect(out).toContain('as it must be');
    expect(out).toContain('it gives this report');
  });

  it('names its nonce, and is refused for another or without one', async () => {
    const verify = (report: string, nonce: string) => runCli(['verify', report, '--nonce', nonce]);
    const { code, out } = await verify(json, 'market-1');
    expect([code, out]).toEqual([0, expect.stringContaining('Nonce: market-1, as it must be')]);
    expect(out).toContain('the holder of the key says so, for the nonce that it names');
    expect((await runCli(['verify', json])).out).toContain('which it must be was not given: --nonce');
    const refused = await verify(json, 'market-2');
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('for the nonce market-1')]);
    const { nonce: _, ...report } = JSON.parse(readFileSync(json, 'utf8')) as Report;
    const without = folder.file('without.json');
    writeFileSync(without, JSON.stringify(signReport(report, sha256(''), readFileSync(own.secret, 'utf8'))));
    expect((await verify(without, 'market-1')).err).toContain('made without a nonce');
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
    ['the nonce', (report) => Object.assign(report, { nonce: 'market-2' })],
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
    expect(verified).toMatchObject({ code: 0, out: expect.stringContaining('Removed since: /base_url') });
    expect((await runCli(['verify', out, '--transcript', transcript])).code).toBe(0);
    const hidden = await runCli(['redact', json, '/checks/0/verdict', '--out', out]);
    expect(hidden.code).toBe(3);
  });

  it('has a badge beside it', () => {
    expect(readFileSync(badge, 'utf8')).toMatch(/^<svg .*conformant, read-only<\/title>/s);
  });
});

/** A report that the holder of the key changed and signed again. */
function forged(change: (report: Editable) => void): string {
  const path = edited(change);
  const { signature, ...report } = JSON.parse(readFileSync(path, 'utf8')) as Report;
  const digest = signature?.transcript_sha256 ?? '';
  writeFileSync(path, JSON.stringify(signReport(report, digest, readFileSync(own.secret, 'utf8'))));
  return path;
}

describe('a report that the holder of the key forged and signed', () => {
  const verify = (path: string, ...more: string[]) => runCli(['verify', path, '--key', own.open, ...more]);

  it.each<[string, number, RegExp, (report: Editable) => void]>([
    ['the outcome alone', 1, /outcome is/, (report) => Object.assign(report, { outcome: 'NON-CONFORMANT' })],
    ['rows that are left out', 1, /rows/, (report) => void report.checks.splice(3, 2)],
    [
      'no rows, and another level',
      1,
      /rows/,
      (report) => Object.assign(report, { checks: [], level: 'full' }),
    ],
    ['another level', 1, /level full/, (report) => Object.assign(report, { level: 'full' })],
    [
      'the end of a row that was never looked at',
      1,
      /cannot be pass/,
      (report) => {
        for (const row of report.checks) if (row.verdict === 'not_selected') row.verdict = 'pass';
      },
    ],
    [
      'a feature that is not there',
      1,
      /features/,
      (report) =>
        Object.assign(report.features?.[0] ?? {}, {
          state: 'supported' === report.features?.[0]?.state ? 'failed' : 'supported',
        }),
    ],
    [
      'what was not asked, but in its row',
      1,
      /cannot be not_asked by its capability/,
      (report) => {
        const row = report.checks.find(({ verdict }) => verdict === 'not_applicable');
        Object.assign(row ?? {}, { verdict: 'not_asked' });
      },
    ],
    ['other counts', 1, /counts/, (report) => Object.assign(report.counts, { fail: 1 })],
    [
      'foreign requirements',
      2,
      /NOT JUDGED: it was judged by other requirements/,
      (report) => Object.assign(report, { requirements_digest: '0'.repeat(64) }),
    ],
  ])('is never believed: %s', async (_what, code, why, change) => {
    const path = forged(change);
    const alone = await verify(path);
    expect([alone.code, alone.out]).toEqual([code, '']);
    expect(alone.err).toMatch(why);
    const withTranscript = await verify(path, '--transcript', transcript);
    expect([withTranscript.code, withTranscript.out]).toEqual([code, '']);
  });

  it.each<[string, (report: Editable) => void]>([
    ['/base_url', (report) => Object.assign(report, { base_url: 'https://other.example/v1' })],
    ['/started_at', (report) => Object.assign(report, { started_at: '2030-01-01T00:00:00.000Z' })],
    ['/checks/0/reason', (report) => Object.assign(report.checks[0] ?? {}, { reason: 'it is fine' })],
    ['/cost_usd', (report) => Object.assign(report, { cost_usd: 7 })],
    ['/exchanges/0', (report) => void report.exchanges.shift()],
  ])('is refused by its transcript for another %s', async (path, change) => {
    const { code, err } = await verify(forged(change), '--transcript', transcript);
    expect(code).toBe(1);
    expect(err).toContain(`by its transcript, ${path}`);
  });

  it('is not judged where another version of the suite could have made it', async () => {
    const path = forged((report) =>
      Object.assign(report, { suite_version: '99.0.0', why: 'by another suite' }),
    );
    const { code, err } = await verify(path, '--transcript', transcript);
    expect(code).toBe(2);
    expect(err).toContain('verify it with 99.0.0');
  });

  it('of an edited transcript says that `judge` made it', async () => {
    const copy = folder.file('other-host.ndjson');
    const text = readFileSync(transcript, 'utf8');
    writeFileSync(copy, text.replace(/"baseUrl":"[^"]*"/, '"baseUrl":"https://nowhere.example/v1"'));
    expect((await runCli(['judge', copy])).err).toContain('its link does not follow');
    const [run, ...rest] = unlinked(text);
    writeFileSync(copy, linked([{ ...run, baseUrl: 'https://nowhere.example/v1' } as RunRecord, ...rest]));
    const path = folder.file('judged.json');
    expect((await runCli(['judge', copy, '--json', path, '--sign', own.secret])).code).toBe(0);
    const { code, out } = await verify(path, '--transcript', copy);
    expect(code).toBe(0);
    expect(out).toContain('whoever had the file could have edited it');
    expect(out).toContain(
      'What it proves: the holder of the key says so, of a transcript that could be edited',
    );
  });

  it.each<[string, RegExp, (text: string) => string]>([
    [
      'two fields of one name',
      /two fields of one name/,
      (text) => text.replace('{', '{"outcome":"CONFORMANT",'),
    ],
    [
      'two fields of one name, one of them escaped',
      /two fields of one name/,
      (text) => text.replace('{', '{"outc\\u006fme":"CONFORMANT",'),
    ],
    ['another format', /its format is 2/, (text) => text.replace('"format":1', '"format":2')],
    [
      'a text for a number',
      /\/cost_usd must be number/,
      (text) => text.replace(/"cost_usd":\d/, '"cost_usd":"1"'),
    ],
    [
      'text inside its key',
      /not base64/,
      (text) => text.replace('"public_key":"', '"public_key":"all is well '),
    ],
  ])('is refused with %s', async (_what, why, change) => {
    const path = folder.file('raw.json');
    writeFileSync(path, change(JSON.stringify(JSON.parse(readFileSync(json, 'utf8')))));
    const { code, err } = await runCli(['verify', path]);
    expect(code).toBe(1);
    expect(err).toMatch(why);
  });

  it.each<[string, (line: string) => string]>([
    ['other spaces', (line) => line.replace('{"kind"', '{ "kind"')],
    ['an escape', (line) => line.replace('"run"', '"ru\\u006e"')],
    ['two fields of one name', (line) => line.replace('{"kind"', '{"level":"full","kind"')],
  ])('is refused with a transcript that has %s', async (_what, change) => {
    const [first = '', ...rest] = readFileSync(transcript, 'utf8').split('\n');
    const copy = folder.file('spaced.ndjson');
    writeFileSync(copy, [change(first), ...rest].join('\n'));
    const { signature: _, ...report } = JSON.parse(readFileSync(json, 'utf8')) as Report;
    const path = folder.file('spaced.json');
    const digest = sha256(readFileSync(copy, 'utf8'));
    writeFileSync(path, JSON.stringify(signReport(report, digest, readFileSync(own.secret, 'utf8'))));
    const { code, err } = await verify(path, '--transcript', copy);
    expect(code).toBe(1);
    expect(err).toContain('REFUSED: in its transcript, line 1');
  });
});

it.each([
  [
    'of another kind',
    'is not of Ed25519',
    () =>
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }),
  ],
  ['that is public', 'private key cannot be read', () => readFileSync(own.open, 'utf8')],
])('is not signed with a key %s, and nothing is bought then', async (_what, why, pem) => {
  const path = folder.file('wrong.pem');
  writeFileSync(path, pem());
  const json = folder.file('x.json');
  const { code, err } = await runCli(['https://x.example/v1', '--json', json, '--sign', path]);
  expect(code).toBe(3);
  expect(err).toContain(why);
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
  const shorter = edited((later) => void later.checks.shift());
  expect((await runCli(['compare', json, shorter])).out).toContain(`LEFT OUT (1)\n  ${report.checks[0]?.id}`);
  writeFileSync(before, '{"format":1}');
  const refused = await runCli(['compare', before, json]);
  expect(refused).toMatchObject({ code: 3, err: expect.stringContaining('must have required property') });
});
