import { describe, expect, it, vi } from 'vitest';
import { cutName, printRows } from './print-records.ts';

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

describe('a table', () => {
  const shown = (rows: readonly object[], output?: 'wide') => {
    const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    const columns = [{ field: 'id', kind: 'id' as const }, { field: 'created_at' }];
    printRows(rows, { output }, { columns, now: Date.UTC(2030, 0, 1, 0, 5) });
    const text = written.mock.calls.join('');
    written.mockRestore();
    return text;
  };
  const at = '2030-01-01T00:00:00.000Z';
  const id = (digits: string) => `inst-${digits.padEnd(32, '0')}`;

  it('has ages, and ids as short as tells them apart', () => {
    expect(shown([{ id: id('1'), created_at: at }])).toBe('ID             AGE\ninst-10000000  5m\n');
    expect(
      shown([
        { id: id('1'), created_at: at },
        { id: id('100000001'), created_at: at },
      ]),
    ).toMatch(/\ninst-100000000 .*\ninst-100000001 /);
  });

  it('has exact times and whole ids if it is wide', () => {
    expect(shown([{ id: id('1'), created_at: at }], 'wide')).toContain(`\n${id('1')}  ${at}\n`);
  });
});
