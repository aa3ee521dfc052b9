import { expect, it } from 'vitest';
import { DAY_MS } from '../../ports/clock.ts';
import { endsOfSlices } from './segments.ts';

const at = 1_795_219_200_000;

it('ends a slice at each midnight of UTC', () => {
  expect(endsOfSlices(at + 1, at + 5)).toEqual([at + 5]);
  expect(endsOfSlices(at - 5, at)).toEqual([at]);
  expect(endsOfSlices(at - 1, at + 2 * DAY_MS + 1)).toEqual([
    at,
    at + DAY_MS,
    at + 2 * DAY_MS,
    at + 2 * DAY_MS + 1,
  ]);
  expect(endsOfSlices(at, at)).toEqual([]);
  expect(endsOfSlices(at + 1, at)).toEqual([]);
});
