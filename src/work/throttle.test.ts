import { expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import { Throttle } from './work-queue.ts';

it('limits the rate of due work after an outage only', async () => {
  const clock = new VirtualClock();
  const warmUp = new Throttle(clock);
  expect([warmUp.allowance, warmUp.pauseMs]).toEqual([Number.POSITIVE_INFINITY, 0]);
  warmUp.begin();
  expect(warmUp.allowance).toBe(8);
  warmUp.take(8);
  expect([warmUp.allowance, warmUp.pauseMs]).toEqual([0, 50]);
  await clock.advance(1_000);
  expect(warmUp.allowance).toBe(20);
  warmUp.take(20);
  await clock.advance(28_999);
  expect(warmUp.allowance).toBeLessThan(600);
  await clock.advance(1);
  expect(warmUp.allowance).toBe(Number.POSITIVE_INFINITY);
});

it('starts again with each outage', async () => {
  const clock = new VirtualClock();
  const warmUp = new Throttle(clock);
  warmUp.begin();
  await clock.advance(20_000);
  warmUp.begin();
  expect(warmUp.allowance).toBe(8);
});
