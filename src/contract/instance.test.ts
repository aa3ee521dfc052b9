import { expect, it } from 'vitest';
import { nameSchema } from './instance.ts';

it.each([
  'a',
  'x'.repeat(255),
  'My box 🚀',
  'اسم',
  'نمی\u200cخواهم',
  '👩\u200d💻',
  '\u0600٥',
  '$(reboot)',
  '--help',
  '../../x',
  "Robert'); DROP TABLE instances;--",
])('accepts %j as a name, unchanged', (name) => {
  expect(nameSchema.parse(name)).toBe(name);
});

it.each([
  '',
  'x'.repeat(256),
  'a\0b',
  'a\nb',
  'a\rb',
  'a\u001bb',
  'a\u0085b',
  'a\u2028b',
  ...['\u202a', '\u202b', '\u202c', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069'].map(
    (mark) => `a${mark}b`,
  ),
  ...['\u200e', '\u200f', '\u061c', '\u200b', '\u2060', '\ufeff', '\u00ad', '\u{e0041}'].map(
    (mark) => `a${mark}b`,
  ),
  'a\ud800b',
  7,
  null,
  ['a'],
])('refuses %j as a name', (name) => {
  expect(nameSchema.safeParse(name).success).toBe(false);
});
