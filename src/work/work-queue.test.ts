import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import { Slots, Throttle } from './work-queue.ts';

describe('slots', () => {
  it('counts the steps of each kind separately', () => {
    const slots = new Slots(new VirtualClock(), 2);
    const releaseSlot = slots.take('instance');
    slots.take('instance');
    expect([slots.free('instance'), slots.free('volume')]).toEqual([0, 2]);
    releaseSlot();
    releaseSlot();
    expect(slots.free('instance')).toBe(1);
  });

  it('does not count a slow step', async () => {
    const clock = new VirtualClock();
    const slots = new Slots(clock, 2);
    slots.take('volume');
    slots.take('volume');
    await clock.advance(1_999);
    expect(slots.free('volume')).toBe(0);
    await clock.advance(1);
    expect(slots.free('volume')).toBe(2);
  });

  it('allows at most 1,024 steps of a kind, including slow ones', async () => {
    const clock = new VirtualClock();
    const slots = new Slots(clock, 64);
    for (let step = 0; step < 1_000; step++) slots.take('instance');
    await clock.advance(60_000);
    expect(slots.free('instance')).toBe(24);
    for (let step = 0; step < 24; step++) slots.take('instance');
    await clock.advance(60_000);
    expect(slots.free('instance')).toBe(0);
  });
});

describe('a throttle', () => {
  it('limits the rate of due work after an outage only', async () => {
    const clock = new VirtualClock();
    const throttle = new Throttle(clock);
    expect([throttle.allowance, throttle.pauseMs]).toEqual([Number.POSITIVE_INFINITY, 0]);
    throttle.begin();
    expect(throttle.allowance).toBe(8);
    throttle.take(8);
    expect([throttle.allowance, throttle.pauseMs]).toEqual([0, 50]);
    await clock.advance(1_000);
    expect(throttle.allowance).toBe(20);
    throttle.take(20);
    await clock.advance(28_999);
    expect(throttle.allowance).toBeLessThan(600);
    await clock.advance(1);
    expect(throttle.allowance).toBe(Number.POSITIVE_INFINITY);
  });

  it('starts again with each outage', async () => {
    const clock = new VirtualClock();
    const throttle = new Throttle(clock);
    throttle.begin();
    await clock.advance(20_000);
    throttle.begin();
    expect(throttle.allowance).toBe(8);
  });
});
