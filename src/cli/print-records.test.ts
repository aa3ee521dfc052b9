import { describe, expect, it } from 'vitest';
import { cutName } from './print-records.ts';

describe('a name in a table', () => {
  it.each([
    ['web', 'web'],
    ['x'.repeat(40), 'x'.repeat(40)],
    ['x'.repeat(255), `${'x'.repeat(39)}…`],
    ['🐦'.repeat(1_000), `${'🐦'.repeat(39)}…`],
    ['a\nb', 'a\\u000ab'],
    [' web', '" web"'],
    ['web ', '"web "'],
    [`${'x'.repeat(255)} `, `"${'x'.repeat(39)}…"`],
  ])('%j is shown as %j', (name, shown) => {
    expect(cutName(name)).toBe(shown);
  });
});
