import fc from 'fast-check';
import ssh2 from 'ssh2';
import { describe, expect, it } from 'vitest';
import { createRedactor, type Redactor } from './redact.ts';

const KEY = 'sk_live+/="<\'&ключ>';

function redacting(...secrets: [name: string, secret: string][]): Redactor {
  const redactor = createRedactor();
  for (const [name, secret] of secrets) redactor.add(name, secret);
  return redactor;
}

describe('a secret is taken out in each of its forms', () => {
  const cases: [string, string][] = [
    ['as it is', KEY],
    ['base64', Buffer.from(KEY).toString('base64')],
    ['base64 without padding', Buffer.from(KEY).toString('base64').replaceAll('=', '')],
    ['base64url', Buffer.from(KEY).toString('base64url')],
    ['hex', Buffer.from(KEY).toString('hex')],
    ['percent-encoded', encodeURIComponent(KEY)],
    ['percent-encoded in lower case', encodeURIComponent(KEY).toLowerCase()],
    ['form-encoded', new URLSearchParams({ key: KEY }).toString().slice('key='.length)],
    ['JSON-escaped', JSON.stringify(KEY).slice(1, -1)],
    ['JSON-escaped to ASCII', 'sk_live+\\/=\\"<\'&\\u043a\\u043b\\u044e\\u0447>'],
    ['HTML-escaped', 'sk_live+/=&quot;&lt;&#x27;&amp;ключ&gt;'],
  ];
  it.each(cases)('%s', (_name, form) => {
    const redactor = redacting(['api key', KEY]);
    expect(redactor.text(`before ${form} after ${form}.`)).toBe(
      'before [redacted: api key] after [redacted: api key].',
    );
  });

  it.each(['', ':', 'me', 'me:', 'you:'])('base64 of a longer text, here after %j', (prefix) => {
    const redactor = redacting(['api key', 'an-api-key-of-some-length']);
    const encoded = Buffer.from(`${prefix}an-api-key-of-some-length${prefix}`).toString('base64');
    const redacted = redactor.text(encoded);
    expect(redacted).toContain('[redacted: api key]');
    expect(Buffer.from(redacted.replace(/\[.*\]/, ''), 'base64').toString()).not.toMatch(/an-api|length|key/);
  });
});

it('names the longest secret where one is the beginning of another', () => {
  const redactor = redacting(['api key', 'secret-1'], ['second api key', 'secret-1-and-more']);
  expect(redactor.text('secret-1 secret-1-and-more')).toBe('[redacted: api key] [redacted: second api key]');
});

it('takes out a private key, and each line of it, but leaves its frame', () => {
  const pem = ssh2.utils.generateKeyPairSync('ed25519').private;
  const redactor = redacting(['private key', pem]);
  const lines = pem.trim().split('\n').slice(1, -1);
  expect(redactor.text(`key: ${pem}`)).toBe('key: [redacted: private key]');
  for (const line of lines.filter(({ length }) => length > 16))
    expect(redactor.text(`at ${line}`)).toBe('at [redacted: private key]');
  expect(redactor.text(JSON.stringify({ pem }))).toBe('{"pem":"[redacted: private key]"}');
  expect(redactor.text(Buffer.from(`#cloud-config\n${pem}`).toString('base64'))).toContain(
    '[redacted: private key]',
  );
  expect(redactor.text('-----BEGIN OPENSSH PRIVATE KEY-----')).toBe('-----BEGIN OPENSSH PRIVATE KEY-----');
});

describe('a short secret', () => {
  const redactor = redacting(['api key', 'abc'], ['second api key', 'z']);
  const cases: [string, string][] = [
    ['abc', '[redacted: api key]'],
    ['the key abc is not valid', 'the key [redacted: api key] is not valid'],
    ['Bearer abc', 'Bearer [redacted: api key]'],
    ['abcdef and xabc', 'abcdef and xabc'],
    ['z', '[redacted: second api key]'],
    ['Bearer z', 'Bearer [redacted: second api key]'],
    ['{"key":"z"}', '{"key":"[redacted: second api key]"}'],
    ['?key=z&b=1', '?key=[redacted: second api key]&b=1'],
    ['the letter z in a zone', 'the letter z in a zone'],
  ];
  it.each(cases)('%j becomes %j', (text, redacted) => {
    expect(redactor.text(text)).toBe(redacted);
  });

  it('that is a word of its own marker is replaced once', () => {
    expect(redacting(['api key', 'key']).text('the key is')).toBe('the [redacted: api key] is');
  });

  it('that is empty changes nothing', () => {
    expect(redacting(['api key', '']).text('text')).toBe('text');
  });
});

describe('a JSON value', () => {
  const redactor = redacting(['api key', '12345678']);

  it('is redacted at any depth, in keys, strings and numbers', () => {
    expect(redactor.value({ x12345678: [{ y: 'is 12345678' }, 12345678, 7, true, null] })).toEqual({
      'x[redacted: api key]': [{ y: 'is [redacted: api key]' }, '[redacted: api key]', 7, true, null],
    });
  });

  it('keeps keys that mean something to JavaScript', () => {
    const value = redactor.value(JSON.parse('{"__proto__":{"a":"12345678"}}'));
    expect(JSON.stringify(value)).toBe('{"__proto__":{"a":"[redacted: api key]"}}');
  });

  it('may be nested as deeply as a hostile body is', () => {
    const deep: unknown = JSON.parse(`${'['.repeat(20_000)}"12345678"${']'.repeat(20_000)}`);
    expect(JSON.stringify(redactor.value(deep))).not.toContain('12345678');
  });
});

describe('whatever the secret is', () => {
  const secret = fc.string({ unit: 'grapheme', minLength: 6, maxLength: 40 });
  const form = fc.constantFrom<(secret: string) => string>(
    (text) => text,
    (text) => JSON.stringify(text),
    (text) => encodeURIComponent(text.toWellFormed()),
    (text) => Buffer.from(text).toString('base64'),
    (text) => Buffer.from(text).toString('base64url'),
  );

  it('the redacted text holds neither it nor the form in which it was written', () => {
    fc.assert(
      fc.property(secret, form, fc.string(), fc.string(), (key, write, before, after) => {
        const redacted = redacting(['api key', key]).text(`${before}${write(key)}${after}`);
        expect(redacted).not.toContain(key);
        expect(redacted).not.toContain(write(key));
      }),
    );
  });

  it('two that overlap are both gone', () => {
    fc.assert(
      fc.property(secret, secret, fc.nat(5), (one, two, overlap) => {
        const redactor = redacting(['api key', one], ['second api key', two]);
        for (const text of [one + two.slice(overlap), one.slice(0, -overlap) + two, two + one]) {
          expect(redactor.text(text)).not.toContain(one);
          expect(redactor.text(text)).not.toContain(two);
        }
      }),
    );
  });

  it('it is gone where a marker and what follows spell it again', () => {
    expect(redacting(['api key', ']-and-tail']).text(']-and-tail-and-tail')).not.toContain(']-and-tail');
  });

  it.each(['redacted', 'api key', ']]]]]]', '[redacted: api key]'])(
    'even %j, which a marker spells',
    (key) => {
      expect(redacting(['api key', key]).text(`the ${key}${key} is`)).not.toContain(key);
    },
  );
});
