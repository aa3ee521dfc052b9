import { expect, it } from 'vitest';
import { inSlices } from './in-slices.ts';

it('gives every item once, in order, and lets others run in between', async () => {
  const items = Array.from({ length: 1_700 }, (_, index) => index);
  let turns = 0;
  let isOver = false;
  const others = (): void => {
    turns++;
    if (!isOver) setImmediate(others);
  };
  setImmediate(others);
  const taken: number[] = [];
  let largest = 0;
  for await (const slice of inSlices(items)) {
    largest = Math.max(largest, slice.length);
    taken.push(...slice);
  }
  isOver = true;
  expect(taken).toEqual(items);
  expect([largest < 1_000, turns >= 3]).toEqual([true, true]);
});

it('of nothing is one slice of nothing, without a pause', async () => {
  const slices: unknown[][] = [];
  for await (const slice of inSlices([])) slices.push(slice);
  expect(slices).toEqual([[]]);
});
