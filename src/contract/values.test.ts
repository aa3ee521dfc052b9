import { expect, it } from 'vitest';
import { toOneLine } from './values.ts';

it.each([
  ['a\r\nBcc: all@example.com', 'a Bcc: all@example.com'],
  ['a\u2028b\u0000c\u202Ed', 'a b c d'],
  ['\ud800', '\uFFFD'],
  ['x'.repeat(100), 'x'.repeat(100)],
  ['x'.repeat(300), `${'x'.repeat(99)}…`],
  ['🚀'.repeat(300), `${'🚀'.repeat(99)}…`],
  ['  ', ''],
])('makes one line of %j', (text, expected) => {
  expect(toOneLine(text, 100)).toBe(expected);
});
