import { expect, it } from 'vitest';
import { parseJson } from './parse-json.ts';

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

it.each([
  ['reads 200 levels', nested(200), true],
  ['refuses 201 levels', nested(201), false],
  ['refuses 20,000 levels within an object', `{"a":${nested(20_000)}}`, false],
  ['reads brackets in a string', JSON.stringify([`\\"${'['.repeat(500)}`, 1]), true],
  ['refuses brackets after a string that ends with a backslash', `{"a\\\\":${nested(201)}}`, false],
  ['refuses what is no JSON', '{', false],
  ['refuses a string without an end', '{"a\\"', false],
])('%s', (_what, text, isRead) => {
  expect(parseJson(text) !== undefined).toBe(isRead);
});
