import { expect, it } from 'vitest';
import { cleanText } from './platform-resource.ts';

it.each([
  ['a NUL', 'no\u0000 unit', 'no  unit'],
  ['lines', ' first\r\nsecond\tthird\n', 'first second third'],
  ['an escape sequence', 'plain \u001b[31mred', 'plain  [31mred'],
  ['C1 controls and separators', 'a\u0085b\u2028c\u2029d', 'a b c d'],
  ['a text that turns its direction', 'abc\u202edef', 'abc def'],
  ['half a character', 'x\ud83d', 'x\ufffd'],
  ['what is printable', 'Köln: 東京 🚀 "quoted"', 'Köln: 東京 🚀 "quoted"'],
  ['nothing', '\u0000', ''],
])('cleans %s', (_name, text, clean) => {
  expect(cleanText(text)).toBe(clean);
});

it('keeps a text of 500 characters, and shortens a longer one without breaking a character', () => {
  expect(cleanText('x'.repeat(500))).toBe('x'.repeat(500));
  expect(cleanText('x'.repeat(501))).toBe(`${'x'.repeat(499)}…`);
  const rockets = cleanText('🚀'.repeat(5_000));
  expect(rockets.length).toBeLessThanOrEqual(500);
  expect(rockets.isWellFormed()).toBe(true);
});
