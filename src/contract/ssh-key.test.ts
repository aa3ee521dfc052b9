import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseSshPublicKey, sshKeyTypes, toAuthorizedKeysLine } from './ssh-key.ts';

const fixtures = join(import.meta.dirname, '../../fixtures/ssh-keys');
const valid = readFixtures('valid');
const invalid = readFixtures('invalid');

/** For each file in invalid/, the words of the expected problem. */
const problems: Record<string, string> = {
  'base64url.txt': 'expected base64',
  'carriage-return-inside.txt': 'on one line',
  'carriage-return-line-feed-before-options.txt': 'on one line',
  'certificate.txt': 'certificates',
  'compressed-point.txt': 'uncompressed',
  'curve-differs-from-type.txt': 'the curve nistp256',
  'dsa.txt': 'DSA',
  'empty.txt': 'empty',
  'escape-sequence-in-comment.txt': 'control characters',
  'garbage.txt': 'begin with one of',
  'known-hosts-line.txt': 'host names before it',
  'length-beyond-the-end.txt': 'truncated',
  'line-feed-inside-key-data.txt': 'on one line',
  'line-feed-inside.txt': 'on one line',
  'line-of-20-kilobytes.txt': 'at most 8192',
  'line-separator-u2028.txt': 'line breaks',
  'lookalike-key-type.txt': 'begin with one of',
  'next-line-u0085.txt': 'line breaks',
  'no-key-data.txt': 'expected base64',
  'no-key-type.txt': 'begin with one of',
  'non-canonical-base64.txt': 'not canonical',
  'nul-in-comment.txt': 'control characters',
  'only-spaces.txt': 'empty',
  'options-cert-authority.txt': 'options',
  'options-command.txt': 'options',
  'options-environment-with-spaces.txt': 'options',
  'options-restrict.txt': 'options',
  'paragraph-separator-u2029.txt': 'line breaks',
  'point-not-on-curve.txt': 'point on the curve',
  'private-key-openssh-without-armor.txt': 'private key',
  'private-key-openssh.txt': 'private key',
  'private-key-pem-rsa.txt': 'private key',
  'private-key-pkcs8.txt': 'private key',
  'private-key-putty.txt': 'private key',
  'public-key-rfc4716.txt': 'on one line',
  'rsa-1024.txt': '2048 to 16384 bits, got 1024',
  'rsa-exponent-1.txt': 'exponent',
  'rsa-modulus-even.txt': 'odd RSA modulus',
  'rsa-modulus-negative.txt': 'positive numbers',
  'rsa-modulus-zero.txt': 'positive numbers',
  'sk-without-application.txt': 'truncated',
  'trailing-bytes.txt': 'bytes after its end',
  'truncated-base64.txt': 'truncated',
  'truncated-data.txt': 'truncated',
  'truncated-key.txt': '32 bytes, got 31',
  'two-keys-joined-by-a-comma.txt': 'another one after it',
  'two-keys-joined-by-an-escaped-line-feed.txt': 'another one after it',
  'two-keys-on-one-line.txt': 'another one after it',
  'two-keys-on-two-lines.txt': 'on one line',
  'type-differs-from-data-ed25519-rsa.txt': 'another type',
  'type-differs-from-data-nistp256-nistp384.txt': 'another type',
  'type-differs-from-data-rsa-ed25519.txt': 'another type',
  'unpadded-base64.txt': 'not canonical',
  'unknown-key-type.txt': 'begin with one of',
  'upper-case-key-type.txt': 'begin with one of',
};

describe('SSH public keys', () => {
  it('has fixtures of every key type, and a reason for every file that is refused', () => {
    const types = new Set([...valid.values()].map((text) => text.split(' ')[0]));
    expect([...types].sort()).toEqual([...sshKeyTypes].sort());
    expect([...invalid.keys()].sort()).toEqual(Object.keys(problems).sort());
  });

  it.each([...valid])('accepts %s, with and without the line end of a .pub file', (_name, text) => {
    const line = text.replace(/\n$/, '');
    const [type, base64, ...comment] = line.split(' ');
    const expected = { key: { type, base64, comment: comment.join(' ') } };
    for (const form of [line, text, `${line}\r\n`, `  ${line}  `])
      expect(parseSshPublicKey(form)).toEqual(expected);
  });

  it.each([...invalid])('refuses %s with its own reason', (name, text) => {
    expect(parseSshPublicKey(text)).toEqual({
      problem: expect.stringContaining(problems[name] ?? 'no reason'),
    });
  });

  it.each([...invalid])('describes the problem of %s without its data', (_name, text) => {
    const result = parseSshPublicKey(text);
    expect('problem' in result && findEcho(result.problem, text)).toBeUndefined();
  });

  it('refuses two line ends, and a line separator at the end', () => {
    const text = valid.get('ed25519.pub') ?? '';
    for (const end of ['\n\n', '\n\r', '\r', '\u2028'])
      expect(parseSshPublicKey(text.trim() + end)).toHaveProperty('problem');
  });

  it('reads tabs and runs of spaces between the parts as one space', () => {
    const [type, base64] = (valid.get('ed25519.pub') ?? '').split(' ');
    expect(parseSshPublicKey(`${type}\t ${base64} \t a \t b`)).toEqual({
      key: { type, base64, comment: 'a b' },
    });
  });
});

describe('any SSH public key', () => {
  const lines = [...valid.values()].map((text) => text.trim());
  const keyParts = fc.constantFrom(...lines.map((line) => line.split(' ') as [string, string]));
  const comments = fc.string({ unit: 'grapheme', maxLength: 60 });

  it('survives being written as an authorized_keys line and read again [ssh-key-round-trip]', () => {
    fc.assert(
      fc.property(keyParts, comments, ([type, base64], comment) => {
        const parsed = parseSshPublicKey(`${type} ${base64} ${comment}`);
        if ('problem' in parsed) return;
        expect(parseSshPublicKey(toAuthorizedKeysLine(parsed.key))).toEqual(parsed);
        expect(toAuthorizedKeysLine(parsed.key)).not.toMatch(/[\r\n\0\u2028\u2029]/);
      }),
      { numRuns: 500 },
    );
  });

  it('never throws, whatever the text [ssh-key-never-throws]', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 400 }),
      fc
        .tuple(fc.constantFrom(...sshKeyTypes), fc.uint8Array({ maxLength: 120 }))
        .map(([type, bytes]) => `${type} ${toBase64(bytes)}`),
      fc
        .tuple(fc.constantFrom(...sshKeyTypes), fc.array(fc.uint8Array({ maxLength: 140 }), { maxLength: 4 }))
        .map(toFramedKey),
    );
    fc.assert(
      fc.property(texts, (text) => void parseSshPublicKey(text)),
      { numRuns: 700 },
    );
  });

  it('never repeats key data in a problem, wherever the key was damaged', () => {
    const damaged = fc.tuple(
      fc.constantFrom(...lines, ...invalid.values()),
      fc.nat(),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 3 }),
    );
    fc.assert(
      fc.property(damaged, ([line, where, insertion]) => {
        const at = where % (line.length + 1);
        const text = line.slice(0, at) + insertion + line.slice(at + insertion.length);
        const result = parseSshPublicKey(text);
        expect('problem' in result ? findEcho(result.problem, text) : undefined).toBeUndefined();
      }),
      { numRuns: 2000 },
    );
  });
});

function readFixtures(folder: 'valid' | 'invalid'): Map<string, string> {
  const names = readdirSync(join(fixtures, folder));
  if (names.length === 0) throw new Error(`no files in ${folder}`);
  return new Map(names.map((name) => [name, readFileSync(join(fixtures, folder, name), 'utf8')]));
}

/** Returns twelve characters of the problem that also occur in the key data, if any. Key types do not count. */
function findEcho(problem: string, text: string): string | undefined {
  const longestFirst = sshKeyTypes.toSorted((a, b) => b.length - a.length);
  const withoutTypes = longestFirst.reduce((rest, type) => rest.replaceAll(type, ''), problem);
  const data = text.split(/\s+/).filter((word) => word.length >= 40);
  for (let at = 0; at + 12 <= withoutTypes.length; at += 1) {
    const run = withoutTypes.slice(at, at + 12);
    if (data.some((word) => word.includes(run))) return run;
  }
  return undefined;
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

/** A well-framed blob of the type with arbitrary fields. */
function toFramedKey([type, fields]: [string, Uint8Array[]]): string {
  const frame = (bytes: Uint8Array) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  return `${type} ${Buffer.concat([Buffer.from(type), ...fields].map(frame)).toString('base64')}`;
}
