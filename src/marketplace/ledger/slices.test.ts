import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DAY_MS } from '../../ports/clock.ts';
import { endsOfSlices, nextSliceAt, sliceEnd } from './slices.ts';

const HOUR_MS = 3_600_000;
const hourly = { sliceMs: HOUR_MS };
const at = 1_795_219_200_000;

it('spreads the hourly slices of many segments over the hour', () => {
  const perMinute = new Array<number>(60).fill(0);
  for (let index = 0; index < 6_000; index++) {
    const next = nextSliceAt(hourly, `seg-${String(index).padStart(8, '0')}`, at);
    const minute = Math.floor((next % HOUR_MS) / 60_000);
    perMinute[minute] = (perMinute[minute] ?? 0) + 1;
  }
  expect(Math.min(...perMinute)).toBeGreaterThan(60);
  expect(Math.max(...perMinute)).toBeLessThan(150);
});

it('the next slice is due after the given moment, and an hour before the following one', () => {
  fc.assert(
    fc.property(fc.string(), fc.nat(10 * DAY_MS), (id, ms) => {
      const next = nextSliceAt(hourly, id, at + ms);
      expect(next).toBeGreaterThan(at + ms);
      expect(next - at - ms).toBeLessThanOrEqual(HOUR_MS);
      expect(nextSliceAt(hourly, id, next)).toBe(next + HOUR_MS);
    }),
  );
});

it('posts all confirmed usage once an hourly slice is due, and nothing before', () => {
  const segment = { id: 'seg-1', postedUntil: at };
  const due = nextSliceAt(hourly, 'seg-1', at);
  expect(sliceEnd(hourly, segment, due - 1, due - 1)).toBe(at);
  expect(sliceEnd(hourly, segment, due - 20_000, due)).toBe(due - 20_000);
});

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
