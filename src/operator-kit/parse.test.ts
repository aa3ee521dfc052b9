import { expect, it } from 'vitest';
import { parseTime, parseTimeToCome } from './parse.ts';

const now = Date.UTC(2026, 10, 21);

it.each([
  ['30m', now + 30 * 60_000],
  ['2h', now + 2 * 3_600_000],
  ['7d', now + 7 * 86_400_000],
  ['2030-01-31T00:00:00Z', Date.UTC(2030, 0, 31)],
  ['2028-02-29t01:00:00.5+01:00', Date.UTC(2028, 1, 29, 0, 0, 0, 500)],
  ['9999-12-31T23:59:59Z', Date.UTC(9999, 11, 31, 23, 59, 59)],
])('%s is a time', (text, at) => {
  expect(parseTime('--expires', text, now)).toBe(at);
  expect(parseTimeToCome('--expires', text, now)).toBe(at);
});

const noTimes = ['2027-02-29T00:00:00Z', '12/01/2027', '2030-01-31', '2030-01-31T00:00:00'];

it.each(['', '30', '30s', '2w', '-2h', '1.5h', 'soon', '9999999d', ...noTimes])(
  '%j is none, and the sentence says what is',
  (text) => {
    expect(() => parseTime('--expires', text, now)).toThrow(
      `--expires ${text}: give minutes, hours or days such as 30m, 2h or 7d, or a time that exists, with its zone, such as 2030-01-31T00:00:00Z.`,
    );
  },
);

it.each(['0m', '2020-01-01T00:00:00Z'])('%s is refused: it is not in the future', (text) => {
  expect(() => parseTimeToCome('--expires', text, now)).toThrow(/that is in the past; give a future time/);
});
