import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { challengeSetup, TLS_KEY } from '../../certificate/challenge.fixture.ts';
import { linked, unlinked } from '../../transcript/chain.fixture.ts';
import type { TranscriptRecord } from '../../transcript/records.ts';

const setup = challengeSetup();
const HOUR = 3_600_000;
const { cli, market, provider, folder, target } = setup;
let challenge: string;
let answered: Awaited<ReturnType<typeof setup.answer>>;

beforeAll(async () => {
  challenge = await setup.issue('challenge', '--base-url', `${target.baseUrl}/`);
  answered = await setup.answer(challenge, 'read-only');
  expect(answered.code, `${answered.err}${answered.out}`).toBe(0);
});
afterAll(() => setup[Symbol.asyncDispose]());

const verify = (report: string, transcript: string, ...more: string[]) =>
  cli(
    ...['verify', report, '--key', provider.open, '--transcript', transcript],
    ...['--challenge', challenge, '--challenge-key', market.open, ...more],
  );

/** A transcript that its holder edited, with links that follow, judged and signed anew. */
async function forge(name: string, change: (records: TranscriptRecord[]) => TranscriptRecord[]) {
  const [json, transcript] = [folder.file(`${name}.json`), folder.file(`${name}.ndjson`)];
  writeFileSync(transcript, linked(change(unlinked(readFileSync(answered.transcript, 'utf8')))));
  const judged = await cli('judge', transcript, '--json', json, '--sign', provider.secret);
  expect(judged.err).toBe('');
  return { json, transcript };
}

describe('a run for a challenge', () => {
  it('says what its signature proves', () => {
    expect(answered.out).toContain(
      'What its signature proves: the holder of the key says so, for a challenge that `verify --challenge` compares; only a run of your own cannot be invented.',
    );
  });

  it('is verified with the challenge, and with its TLS key', async () => {
    const { code, out, err } = await verify(answered.json, answered.transcript, '--tls-key', TLS_KEY);
    expect(code, err).toBe(0);
    expect(out).toMatch(/^CONFORMANT at level read-only/);
    expect(out).toContain('Challenge: the one that the run answered');
    expect(out).toContain(`TLS key: ${TLS_KEY}, as it must be`);
    expect(out).toMatch(/Suite: [0-9a-f]{64}, the same as here; a changed suite could say so too/);
    expect(out).toContain('it is not older than its challenge; only a run of your own cannot be invented');
  });

  it('says without the challenge that it was not compared', async () => {
    const { code, out } = await cli('verify', answered.json, '--transcript', answered.transcript);
    expect(code).toBe(0);
    expect(out).toContain('Challenge: not compared (--challenge)');
    expect(out).not.toContain('not older');
  });

  it('cannot be told from an invented one, and each output says so', async () => {
    const { json, transcript } = await forge('invented', (records) =>
      records.map((record) =>
        record.kind === 'exchange' && record.answer?.status === 401
          ? {
              ...record,
              answer: { ...record.answer, headers: { ...record.answer.headers, server: 'invented' } },
            }
          : record,
      ),
    );
    const { code, out } = await verify(json, transcript);
    expect(code).toBe(0);
    expect(out).toContain('Made by: `judge`, from a file; whoever had the file could have edited it before');
    expect(out).toContain('only a run of your own cannot be invented');
  });

  it('begins with a warning if it may take longer than the challenge is valid', async () => {
    const short = await setup.issue('short', '--valid-hours', '0.1');
    const transcript = folder.file('short.ndjson');
    const args = [
      '--level',
      'read-only',
      '--state-dir',
      folder.path,
      '--transcript',
      transcript,
      '--challenge',
      short,
    ];
    const { err } = await cli(target.baseUrl, ...args);
    expect(err).toMatch(
      /NOTE {4}The challenge expires in \d minutes, and the run may take 10 \(--max-minutes\)/,
    );
    expect(answered.err).not.toContain('expires in');
  });

  it('is refused for another challenge, or one that the marketplace did not sign', async () => {
    const other = await setup.issue('other');
    const withOther = await verify(answered.json, answered.transcript, '--challenge', other);
    expect(withOther).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('for another challenge'),
    });
    const ofAnother = await verify(answered.json, answered.transcript, '--challenge-key', provider.open);
    expect(ofAnother).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('the challenge was signed with another key'),
    });
    const edited = folder.file('edited-challenge.json');
    writeFileSync(
      edited,
      readFileSync(challenge, 'utf8').replace(/"expires_at": "2026/, '"expires_at": "2036'),
    );
    const withEdited = await verify(answered.json, answered.transcript, '--challenge', edited);
    expect(withEdited).toMatchObject({ code: 1, err: expect.stringContaining('not what was signed') });
  });

  it('is refused where another TLS key or suite is required', async () => {
    for (const flag of ['--tls-key', '--suite-digest']) {
      const { code, err } = await verify(answered.json, answered.transcript, flag, '0'.repeat(64));
      expect([code, err]).toEqual([1, expect.stringContaining('0000')]);
    }
  });

  it.each([
    [['--challenge', 'x.json'], /needs --transcript/],
    [['--tls-key', '0'.repeat(64)], /--tls-key needs --challenge: give/],
    [['--transcript', 'x', '--challenge-key', 'x.pub'], /--challenge-key needs --challenge: give/],
    [['--tls-key', 'short'], /64 hex digits/],
  ])('is not verified with %j', async (flags, why) => {
    const { code, err } = await cli('verify', answered.json, ...flags);
    expect(code).toBe(3);
    expect(err).toMatch(why);
  });
});

describe('before it sends anything, a run refuses', () => {
  const begin = (...flags: string[]) =>
    cli(target.baseUrl, '--level', 'read-only', '--state-dir', folder.path, ...flags);
  const transcript = ['--transcript', folder.file('begun.ndjson')];

  it.each<[string, RegExp, () => Promise<string[]> | string[]]>([
    ['a challenge that was used here', /was used before/, () => [...transcript, '--challenge', challenge]],
    [
      'a challenge of another level',
      /for level full, and the run would be of level read-only/,
      async () => [...transcript, '--challenge', await setup.issue('level', '--level', 'full')],
    ],
    [
      'a challenge of another target',
      /for https:\/\/other\.example\/v1, and not/,
      async () => [
        ...transcript,
        '--challenge',
        await setup.issue('target', '--base-url', 'https://other.example/v1'),
      ],
    ],
    [
      'a challenge of another marketplace',
      /signed with another key/,
      async () => [
        ...transcript,
        '--challenge',
        await setup.issue('market'),
        '--challenge-key',
        provider.open,
      ],
    ],
    [
      'a challenge that has expired',
      /expired at/,
      async () => {
        const path = await setup.issue('expired', '--valid-hours', '1');
        await setup.pass(HOUR);
        return [...transcript, '--challenge', path];
      },
    ],
    [
      'an edited challenge',
      /not what was signed/,
      async () => {
        const path = await setup.issue('edited');
        writeFileSync(path, readFileSync(path, 'utf8').replace('"read-only"', '"full"'));
        return [...transcript, '--level', 'full', '--challenge', path];
      },
    ],
    [
      'a challenge with two fields of one name',
      /not one that `berth conformance challenge` wrote/,
      async () => {
        const path = await setup.issue('twice');
        writeFileSync(path, readFileSync(path, 'utf8').replace('{', '{"level":"full",'));
        return [...transcript, '--challenge', path];
      },
    ],
    ['a report for a challenge', /not one that/, () => [...transcript, '--challenge', answered.json]],
    ['a challenge without a transcript', /needs --transcript/, () => ['--challenge', challenge]],
    [
      'a key without a challenge',
      /--challenge-key needs --challenge: give/,
      () => ['--challenge-key', market.open],
    ],
  ])('%s', async (_what, why, flags) => {
    const given = await flags();
    const before = target.sent.length;
    const { code, err } = await begin(...given);
    expect([code, err]).toEqual([3, expect.stringMatching(why)]);
    expect(target.sent.length).toBe(before);
  });
});

it('a challenge is issued with a fresh nonce, its terms and a warning', async () => {
  const { challenge: first } = setup.read(challenge);
  const { challenge: second } = setup.read(await setup.issue('second', '--valid-hours', '1'));
  expect(first).toMatchObject({ format: 1, level: 'read-only', base_url: target.baseUrl });
  expect(second.nonce).not.toBe(first.nonce);
  expect(second).not.toHaveProperty('base_url');
  expect(Date.parse(second.expires_at) - Date.parse(second.issued_at)).toBe(3_600_000);
  const out = folder.file('third.json');
  const issued = await cli('challenge', '--key', market.secret, '--level', 'full', '--out', out);
  expect(issued.err).toContain('keep it secret until your own run has ended');
  const wrong = await cli('challenge', '--key', market.open, '--level', 'full', '--out', out);
  expect(wrong).toMatchObject({ code: 3, err: expect.stringContaining('private key cannot be read') });
});
