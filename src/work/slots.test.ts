import { expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import { Slots } from './work-queue.ts';

it('counts the steps of each kind separately', () => {
  const places = new Slots(new VirtualClock(), 2);
  const releaseSlot = places.take('instance');
  places.take('instance');
  expect([places.free('instance'), places.free('volume')]).toEqual([0, 2]);
  releaseSlot();
  releaseSlot();
  expect(places.free('instance')).toBe(1);
});

it('does not count a slow step', async () => {
  const clock = new VirtualClock();
  const places = new Slots(clock, 2);
  places.take('volume');
  places.take('volume');
  await clock.advance(1_999);
  expect(places.free('volume')).toBe(0);
  await clock.advance(1);
  expect(places.free('volume')).toBe(2);
});

it('allows at most 1,024 steps of a kind, including slow ones', async () => {
  const clock = new VirtualClock();
  const places = new Slots(clock, 64);
  for (let step = 0; step < 1_000; step++) places.take('instance');
  await clock.advance(60_000);
  expect(places.free('instance')).toBe(24);
  for (let step = 0; step < 24; step++) places.take('instance');
  await clock.advance(60_000);
  expect(places.free('instance')).toBe(0);
});
