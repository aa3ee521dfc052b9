import { expect, it } from 'vitest';
import { nextTurn } from './clock.ts';
import { forEachInSlices, inSlices } from './in-slices.ts';

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

it('returns one empty slice for no items, without a pause', async () => {
  const slices: unknown[][] = [];
  for await (const slice of inSlices([])) slices.push(slice);
  expect(slices).toEqual([[]]);
});

it('runs work for all items concurrently, lets others run in between, and ends when it is stopped', async () => {
  const items = Array.from({ length: 1_700 }, (_, index) => index);
  const done: number[] = [];
  let [underWay, most, isStopped] = [0, 0, false];
  const work = async (item: number) => {
    most = Math.max(most, ++underWay);
    await Promise.resolve();
    underWay--;
    done.push(item);
  };
  const pace = { atOnce: 4, isStopped: () => isStopped };
  expect(await forEachInSlices(items, pace, work)).toBe(true);
  expect([done, most]).toEqual([items, 4]);

  done.length = 0;
  const running = forEachInSlices(items, pace, work);
  await nextTurn();
  isStopped = true;
  expect([await running, done.length > 0, done.length < items.length]).toEqual([false, true, true]);

  done.length = 0;
  const stopsItself = { atOnce: 4, isStopped: () => done.length >= 10 };
  expect(await forEachInSlices(items, stopsItself, work)).toBe(false);
  // Items already started run to their end.
  expect(done.length).toBeLessThan(10 + 4);
});
