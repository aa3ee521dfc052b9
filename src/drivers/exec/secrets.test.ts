import { expect, it } from 'vitest';
import { Secrets } from './secrets.ts';

const SECRET = 'p/ss?wörd+of~the provider>>';
const base64 = (text: string): string => Buffer.from(text).toString('base64');

it.each([
  ['as it is', SECRET],
  ['in a URL', encodeURIComponent(SECRET)],
  ['in JSON', SECRET.replace('/', '\\/')],
  ['in hex', Buffer.from(SECRET).toString('hex')],
  ['in large hex', Buffer.from(SECRET).toString('hex').toUpperCase()],
  ['in base64', base64(SECRET)],
  ['in base64url', Buffer.from(SECRET).toString('base64url')],
  ['in base64 in JSON', base64(SECRET).replaceAll('/', '\\/')],
  ['in base64 in a URL', encodeURIComponent(base64(SECRET))],
  ['in base64 with a line break after it', base64(`${SECRET}\n`)],
  ['in base64 after a user name of any length', base64(`u:${SECRET}`)],
  ['in base64 between other text', base64(`ab:${SECRET}, and more`)],
])('removes a value %s', (_how, form) => {
  const cleaned = new Secrets([SECRET]).clean(`it says ${form}.`);
  expect(cleaned).toMatch(/^it says \S{0,4}\[redacted\]\S{0,16}\.$/);
  expect(cleaned).not.toContain(form);
});

it('keeps a short value, which may be an ordinary word', () => {
  expect(new Secrets(['debug']).clean('debug 6465627567 ZGVidWc=')).toBe('debug 6465627567 ZGVidWc=');
});

it('removes it from the texts of an answer, at any depth, and from nothing else', () => {
  const answer = { ref: SECRET, items: [{ host: 'h', detail: SECRET, power: null }], text: base64(SECRET) };
  expect(new Secrets([SECRET]).cleanAnswer(answer)).toEqual({
    ref: SECRET,
    items: [{ host: 'h', detail: '[redacted]', power: null }],
    text: '[redacted]',
  });
});
