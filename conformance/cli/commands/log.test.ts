import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { signReport } from '../../certificate/sign.ts';
import type { Report } from '../../report/report.ts';
import { type CliResult, referenceParts, runCli, serveTarget, temporaryFolder } from '../cli.fixture.ts';

const ORIGIN = 'log.example/berth';
const folder = temporaryFolder();
const { file } = folder;
const log = file('log');

function writeKeys(name: string): void {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  writeFileSync(file(`${name}.pem`), privateKey.export({ format: 'pem', type: 'pkcs8' }));
  writeFileSync(file(`${name}.pub`), publicKey.export({ format: 'pem', type: 'spki' }));
}

/** Signs another report of the same target. */
function writeReport(name: string, change: Partial<Report> = {}): string {
  const { signature, ...report } = JSON.parse(readFileSync(file('real.json'), 'utf8')) as Report;
  const pem = readFileSync(file('own.pem'), 'utf8');
  const signed = signReport({ ...report, run_id: name, ...change }, signature?.transcript_sha256 ?? '', pem);
  writeFileSync(file(`${name}.json`), JSON.stringify(signed));
  return file(`${name}.json`);
}

beforeAll(async () => {
  for (const name of ['own', 'log', 'witness', 'other']) writeKeys(name);
  const target = referenceParts();
  const files = ['--json', file('real.json'), '--transcript', file('real.ndjson'), '--sign', file('own.pem')];
  const args = [target.baseUrl, '--level', 'read-only', '--state-dir', folder.path, ...files];
  expect((await runCli(args, { parts: target.parts })).code).toBe(0);
  await target[Symbol.asyncDispose]();
  for (const name of ['a', 'b', 'c']) writeReport(name);
});
afterAll(() => folder[Symbol.dispose]());
beforeEach(() => {
  for (const name of ['log', 'seen', 'witness.state', 'cosigned'])
    rmSync(file(name), { recursive: true, force: true });
});

const publish = (report: string, ...more: string[]): Promise<CliResult> =>
  runCli([
    'publish',
    file(`${report}.json`),
    '--log',
    log,
    '--log-key',
    file('log.pem'),
    '--origin',
    ORIGIN,
    ...more,
  ]);
const verify = (report: string, ...more: string[]): Promise<CliResult> =>
  runCli(['verify', file(`${report}.json`), '--log', log, '--log-key', file('log.pub'), ...more]);
const asWitness = [
  '--key',
  file('witness.pem'),
  '--name',
  'witness.example/w1',
  '--state',
  file('witness.state'),
];
const cosign = (...more: string[]): Promise<CliResult> =>
  runCli(['cosign', '--log', log, '--log-key', file('log.pub'), ...more]);

describe('publish', () => {
  it('appends a signed report, and names the key that readers need', async () => {
    const first = await publish('real');
    expect(first).toMatchObject({ code: 0, err: '' });
    expect(first.out).toMatch(
      /^Published: CONFORMANT at level read-only is entry 0 of log.example\/berth, which has 1\.\nVerifier key: log.example\/berth\+[0-9a-f]{8}\+A\S+\n$/,
    );
    expect((await publish('a')).out).toContain('is entry 1 of log.example/berth, which has 2.');
    expect((await publish('real')).out).toContain('Nothing was appended: the report is entry 0');
  });

  it('refuses a report that is not signed, was changed or contradicts itself, and makes no log of it', async () => {
    const { signature: _, ...unsigned } = JSON.parse(readFileSync(file('real.json'), 'utf8'));
    writeFileSync(file('x.json'), JSON.stringify(unsigned));
    expect(await publish('x')).toMatchObject({
      code: 1,
      err: expect.stringContaining('REFUSED: it is not signed'),
    });
    writeFileSync(file('x.json'), readFileSync(file('real.json'), 'utf8').replace('https://', 'http://'));
    expect((await publish('x')).err).toContain('not what was signed');
    writeReport('x', { outcome: 'INCOMPLETE' });
    expect((await publish('x')).err).toContain('outcome is "CONFORMANT"');
    expect(existsSync(log)).toBe(false);
  });

  it('accepts a report of other requirements, and says what it did not check', async () => {
    writeReport('x', { requirements_digest: '0'.repeat(64) });
    expect(await publish('x')).toMatchObject({
      code: 0,
      err: expect.stringContaining('NOTE    Its rows were not'),
    });
  });

  it('asks for the name of a new log, and for a private key', async () => {
    const args = ['publish', file('real.json'), '--log', log, '--log-key'];
    expect((await runCli([...args, file('log.pem')])).err).toContain('name it with --origin');
    expect(await runCli([...args, file('log.pub')])).toMatchObject({
      code: 3,
      err: expect.stringContaining('private'),
    });
    expect((await publish('real', '--origin', 'two words')).code).toBe(3);
    expect((await publish('real', '--log', file('real.json'))).code).toBe(3);
  });
});

describe('verify --log', () => {
  beforeEach(async () => {
    for (const report of ['real', 'a', 'b']) await publish(report);
  });

  it('proves that the report is in the log', async () => {
    const { code, out } = await verify('a', '--key', file('own.pub'), '--log-state', file('seen'));
    expect(code).toBe(0);
    expect(out).toContain(
      'Log: entry 1 of the 3 in log.example/berth (which name it must have was not given',
    );
    expect(out).toContain('Log before: not seen before; ');
    expect(out).toContain('Witness: none was demanded');
    expect(out).toContain('LATER REPORT: entry 2: CONFORMANT at level read-only');
    await publish('c');
    expect((await verify('a', '--log-state', file('seen'))).out).toContain(
      'it still has its 3 earlier entries',
    );
  });

  it('proves it by the verifier key that publish names, over HTTP, and with the transcript', async () => {
    const { out } = await publish('real');
    writeFileSync(file('log.vkey'), out.split('Verifier key: ')[1] ?? '');
    await using server = await serveTarget(({ url }, response) => {
      response.end(readFileSync(join(log, url ?? '')));
    });
    const args = ['--transcript', file('real.ndjson'), '--log', server.origin, '--log-key', file('log.vkey')];
    const verified = await verify('real', ...args);
    expect(verified).toMatchObject({
      code: 0,
      out: expect.stringContaining('Log: entry 0 of the 3 in log.example/berth\n'),
    });
  });

  it('saves a proof that needs no log', async () => {
    expect((await verify('a', '--save-proof', file('a.tlog-proof'))).code).toBe(0);
    expect(readFileSync(file('a.tlog-proof'), 'utf8')).toMatch(
      /^c2sp.org\/tlog-proof@v1\nextra \S+\nindex 1\n/,
    );
    const offline = (report: string, ...more: string[]) =>
      runCli(['verify', file(`${report}.json`), '--proof', file('a.tlog-proof'), ...more]);
    const { code, out } = await offline('a', '--log-key', file('log.pub'));
    expect(code).toBe(0);
    expect(out).toContain('Log: entry 1 of the 3 in log.example/berth, by the proof alone');
    expect((await offline('b', '--log-key', file('log.pub'))).err).toContain(
      'the proof is of another report',
    );
    expect((await offline('a', '--log-key', file('other.pub'))).code).toBe(1);
    expect((await publish('c', '--save-proof', file('c.tlog-proof'))).code).toBe(0);
    expect(
      (
        await runCli([
          'verify',
          file('c.json'),
          '--proof',
          file('c.tlog-proof'),
          '--log-key',
          file('log.pub'),
        ])
      ).code,
    ).toBe(0);
  });

  it.each([
    ['no key of the log', '--log-key is missing', ['--log', log]],
    [
      'a key of the log without a log',
      '--log-key needs --log or --proof: give',
      ['--log-key', file('log.pub')],
    ],
    [
      'a state without a log',
      '--log-state compares with the log itself',
      ['--proof', 'x', '--log-key', 'x', '--log-state', 'x'],
    ],
    [
      'an age without a witness',
      '--witness-within-h is about a witness',
      ['--log', log, '--log-key', file('log.pub'), '--witness-within-h', '2'],
    ],
    ['an age that is none', 'number of hours', ['--log', log, '--witness-within-h', 'x']],
    ['a folder that is none', 'is not a folder', ['--log', file('none'), '--log-key', file('log.pub')]],
    ['a folder that is no log', 'it is not a log', ['--log', folder.path, '--log-key', file('log.pub')]],
    ['a key that is none', 'neither a PEM key nor', ['--log', log, '--log-key', file('real.json')]],
    ['a proof that is not there', 'cannot be read', ['--proof', file('none'), '--log-key', file('log.pub')]],
  ])('with %s is a mistake', async (_what, why, args) => {
    expect(await runCli(['verify', file('a.json'), ...args])).toMatchObject({
      code: 3,
      err: expect.stringContaining(why),
    });
  });
});

describe('cosign', () => {
  beforeEach(async () => {
    for (const report of ['real', 'a']) await publish(report);
  });
  const demanded = ['--witness-key', file('witness.pub')];

  it('puts a cosignature into the folder of the log, which verify demands', async () => {
    expect((await verify('a', ...demanded)).err).toContain('has not cosigned the checkpoint of 2 entries');
    const { code, out } = await cosign(...asWitness);
    expect(code).toBe(0);
    expect(out).toContain(
      'Cosigned: the 2 entries of log.example/berth. It was not seen before.\nVerifier key: witness.example/w1+',
    );
    expect((await verify('a', ...demanded)).out).toMatch(/Witness: witness.example\/w1 cosigned it, 20\d\d-/);
    expect((await verify('a', ...demanded, '--witness-key', file('other.pub'))).code).toBe(1);
    expect((await verify('a', ...demanded, '--witness-within-h', '1')).code).toBe(0);
    await publish('b');
    expect((await cosign(...asWitness)).out).toContain('It still has the 2 entries of the last time.');
  });

  it('writes it to a file for a log behind a URL, which the log then adds', async () => {
    await using server = await serveTarget(({ url }, response) => {
      response.end(readFileSync(join(log, url ?? '')));
    });
    const far = ['--log', server.origin, ...asWitness];
    expect((await cosign(...far)).err).toContain('give --out too');
    expect((await cosign(...far, '--out', file('cosigned'))).code).toBe(0);
    expect((await verify('a', ...demanded)).code).toBe(1);
    expect((await cosign('--add', file('cosigned'))).err).toContain('needs the --witness-key');
    expect(await cosign('--add', file('cosigned'), '--witness-key', file('other.pub'))).toMatchObject({
      code: 1,
      err: expect.stringContaining('did not cosign'),
    });
    expect((await cosign('--add', file('cosigned'), ...demanded)).out).toContain('Added');
    expect((await verify('a', ...demanded)).code).toBe(0);
    await publish('b');
    expect((await cosign('--add', file('cosigned'), ...demanded)).err).toContain('the log has grown since');
  });

  it('asks for what a witness needs', async () => {
    expect(await cosign('--key', file('witness.pem'))).toMatchObject({
      code: 3,
      err: expect.stringContaining('--key, --name and --state'),
    });
    expect((await cosign(...asWitness, '--name', 'a b')).err).toContain('no space');
    expect((await cosign(...asWitness, '--key', file('log.pem'))).err).toContain('a witness has its own');
  });
});

describe('log', () => {
  const list = (): Promise<CliResult> => runCli(['log', '--log', log, '--log-key', file('log.pub')]);

  it('lists the entries of a log, with nothing that could move the cursor', async () => {
    await publish('real');
    writeReport('x', { base_url: 'https://x.example/\u001b[2J', requirements_digest: '0'.repeat(64) });
    await publish('x');
    const { code, out } = await list();
    expect(code).toBe(0);
    expect(out).toMatch(
      /^log.example\/berth: 2 entries, as the log signed them.\n0 {2}CONFORMANT at level read-only: https:\/\/reference.test\/v1, 20\S+, signed by \S{44}\n1 {2}CONF.*\n$/,
    );
    expect(out).not.toContain('\u001b');
  });
});
