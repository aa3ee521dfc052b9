import { expect, it } from 'vitest';
import { nameSchema } from './instance.ts';

it.each([
  'a',
  'x'.repeat(255),
  'My box 🚀',
  'اسم',
  '$(reboot)',
  '--help',
  '../../x',
  "Robert'); DROP TABLE instances;--",
])('takes %j for a name, as it is', (name) => {
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
  'a\ud800b',
  7,
  null,
  ['a'],
])('refuses %j for a name', (name) => {
  expect(nameSchema.safeParse(name).success).toBe(false);
});
