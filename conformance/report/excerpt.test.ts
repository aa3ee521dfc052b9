import fc from 'fast-check';
import { expect, it } from 'vitest';
import { toBodyExcerpt, toExcerpt } from './excerpt.ts';

it('shows JSON with a line for each field', () => {
  expect(toBodyExcerpt('{"a":[],"b":{"c":[1, "x,{}"]},"d":{}}').text).toBe(
    [
      '{',
      '  "a": [],',
      '  "b": {',
      '    "c": [',
      '      1,',
      '      "x,{}"',
      '    ]',
      '  },',
      '  "d": {}',
      '}',
    ].join('\n'),
  );
});

it('changes no token: numbers, escapes and a repeated name stay as sent', () => {
  const sent = '{"n":1.0,"big":12345678901234567890,"n":2e3,"s":"\\u00e9\\/"}';
  expect(toBodyExcerpt(sent).text.replaceAll(/\s/g, '')).toBe(sent);
});

it('shows any JSON as that JSON', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      const { text, more } = toBodyExcerpt(json);
      if (more === 0) expect(JSON.parse(text)).toEqual(JSON.parse(json));
    }),
  );
});

it('shows what is no JSON as it is', () => {
  expect(toBodyExcerpt('{"a":')).toEqual({ text: '{"a":', more: 0 });
  expect(toBodyExcerpt('')).toEqual({ text: '', more: 0 });
});

it.each([
  ['JSON', `[${'1,'.repeat(20_000)}1]`],
  ['deep JSON', `${'['.repeat(20_000)}${']'.repeat(20_000)}`],
  ['text', 'x'.repeat(1_000_000)],
])('cuts long %s and says how much is left out', (_, body) => {
  const { text, more } = toBodyExcerpt(body);
  expect(text).toHaveLength(4096);
  expect(more).toBeGreaterThan(30_000);
});

it('leaves no half of a character', () => {
  expect(toExcerpt('ab😀', 3)).toEqual({ text: 'ab', more: 2 });
});
