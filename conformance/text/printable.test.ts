import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isPrintable, printable, printableLines } from './printable.ts';

describe('what would not be seen is shown as an escape', () => {
  const cases: [string, string, string][] = [
    ['an ANSI colour', '\x1b[31mred\x1b[0m', '\\x1b[31mred\\x1b[0m'],
    ['an ANSI sequence of one C1 byte', '\x9b2J', '\\x9b2J'],
    ['a title that a terminal would take', '\x1b]0;owned\x07', '\\x1b]0;owned\\x07'],
    ['NUL, backspace and delete', 'a\0b\bc\x7f', 'a\\x00b\\x08c\\x7f'],
    ['line ends and tabs', 'a\r\nb\tc', 'a\\r\\nb\\tc'],
    ['other line ends', 'a\u2028b\u2029c\u0085d', 'a\\u2028b\\u2029c\\x85d'],
    ['bidi overrides and isolates', '\u202eevil\u2066x\u2069', '\\u202eevil\\u2066x\\u2069'],
    ['zero-width characters', 'a\u200bb\u200dc\ufeffd\u00ade', 'a\\u200bb\\u200dc\\ufeffd\\xade'],
    ['fillers that look like nothing', 'a\u3164b', 'a\\u3164b'],
    ['tag characters beyond the first plane', 'a\u{e0041}', 'a\\u{e0041}'],
    ['half a surrogate pair', 'a\ud83d', 'a\\ud83d'],
  ];
  it.each(cases)('%s', (_name, text, shown) => {
    expect(printable(text, 100)).toBe(shown);
    expect(isPrintable(text)).toBe(false);
  });

  it.each(['', 'plain', 'GPU für 12 €', '日本語', 'עברית', '🙂', 'C:\\path "quoted" $HOME'])(
    'leaves %j as it is',
    (text) => {
      expect(printable(text, 100)).toBe(text);
      expect(isPrintable(text)).toBe(true);
    },
  );
});

describe('long text', () => {
  it('is cut, and says how much more there was', () => {
    expect(printable('abcdef', 6)).toBe('abcdef');
    expect(printable('abcdefg', 6)).toBe('abcdef… (1 more character)');
    expect(printable('x'.repeat(1_000_000), 3)).toBe('xxx… (999997 more characters)');
  });

  it('is never cut within an escape or a pair of surrogates', () => {
    expect(printable('ab\x1bcd', 4)).toBe('ab… (3 more characters)');
    expect(printable('a🙂🙂', 2)).toBe('a… (2 more characters)');
  });
});

it('always gives text that can be shown as it is, within its length', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(40), (text, maxLength) => {
      const shown = printable(text, maxLength);
      expect(isPrintable(shown)).toBe(true);
      expect(shown.replace(/… \(\d+ more characters?\)$/, '').length).toBeLessThanOrEqual(maxLength);
    }),
  );
});

describe('the last guard of all output', () => {
  const painted = '\x1b[1;32mOK\x1b[0m';

  it('lets through what the suite itself sends to a terminal, and there alone', () => {
    expect(printableLines(`\r\x1b[K${painted}\n`, true)).toBe(`\r\x1b[K${painted}\n`);
    expect(printableLines(`${painted}\n`, false)).toBe('\\x1b[1;32mOK\\x1b[0m\n');
  });

  it.each([
    ['a title', '\x1b]0;owned\x07', '\\x1b]0;owned\\x07'],
    ['hidden text', '\x1b[8mpass', '\\x1b[8mpass'],
    ['a cursor', '\x1b[2A\x9b2J\rforged', '\\x1b[2A\\x9b2J\\rforged'],
    ['a direction', 'a\u202eb', 'a\\u202eb'],
  ])('escapes %s of a target', (_what, text, shown) => {
    expect(printableLines(`${text}\n`, true)).toBe(`${shown}\n`);
  });
});
