import { expect, it } from 'vitest';
import { parseJson } from './json.ts';

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

it.each([
  ['200 deep is read', nested(200), true],
  ['201 deep is none', nested(201), false],
  ['6000 deep is none', `{"error":${nested(6000)}}`, false],
  ['with brackets in a string is read', JSON.stringify([`\\"${'['.repeat(500)}`, 1]), true],
  ['with much side by side is read', `[${Array.from({ length: 500 }, () => '{"a":[]}').join()}]`, true],
])('JSON %s', (_what, text, isRead) => {
  expect(parseJson(text) !== undefined).toBe(isRead);
});
