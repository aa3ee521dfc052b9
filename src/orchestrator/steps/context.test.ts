import { expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/clocks/virtual-clock.ts';
import { CreateCalls } from './context.ts';

const FORGET_MS = 60_000;

it('a create is out until it comes back, with whatever answer', async () => {
  const creates = new CreateCalls(new VirtualClock(), FORGET_MS);
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  const sending = [creates.send('a', () => first.promise), creates.send('a', () => second.promise)];
  first.resolve();
  await sending[0];
  expect([creates.isInFlight('a'), creates.isInFlight('b')]).toEqual([true, false]);
  second.reject(new Error('no answer'));
  await expect(sending[1]).rejects.toThrow('no answer');
  expect(creates.isInFlight('a')).toBe(false);
});

it('a create that never comes back is forgotten, and one that was sent after it is not', async () => {
  const clock = new VirtualClock();
  const creates = new CreateCalls(clock, FORGET_MS);
  const never = () => new Promise<never>(() => undefined);
  void creates.send('a', never);
  await clock.advance(FORGET_MS - 1);
  expect(creates.isInFlight('a')).toBe(true);
  void creates.send('b', never);
  await clock.advance(1);
  expect([creates.isInFlight('a'), creates.isInFlight('b')]).toEqual([false, true]);
});
