import { expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { cachedFigure } from './metrics.ts';

it('counts once in five seconds for any number of callers', async () => {
  const clock = new VirtualClock();
  let counts = 0;
  const figure = cachedFigure(clock, async () => ++counts);
  expect(await Promise.all([figure(), figure(), figure()])).toEqual([1, 1, 1]);
  await clock.advance(4_999);
  expect(await figure()).toBe(1);
  await clock.advance(1);
  expect([await figure(), await figure()]).toEqual([2, 2]);
});

it('is undefined while the database does not answer, and retries five seconds later', async () => {
  const clock = new VirtualClock();
  let isUp = false;
  const figure = cachedFigure(clock, async () => {
    if (!isUp) throw new Error('closed');
    return 7;
  });
  expect(await figure()).toBeUndefined();
  isUp = true;
  await clock.advance(5_000);
  expect(await figure()).toBe(7);
});
