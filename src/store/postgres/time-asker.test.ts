import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { TimeAsker } from './time-asker.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('asks each time after the answer before, also after a failure, and not once it is stopped', async () => {
  const ask = vi.fn(() => Promise.resolve());
  ask.mockRejectedValueOnce(new Error('no'));
  const asker = new TimeAsker(ask, 100);
  asker.start();
  await vi.advanceTimersByTimeAsync(99);
  expect(ask).toHaveBeenCalledTimes(0);
  await vi.advanceTimersByTimeAsync(301);
  expect(ask).toHaveBeenCalledTimes(4);
  await asker.stop();
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(ask).toHaveBeenCalledTimes(4);
});

it('waits at its stop for what is being asked, and does not go on after it', async () => {
  let answer = (): void => undefined;
  const asker = new TimeAsker(() => new Promise<void>((resolve) => (answer = resolve)), 100);
  asker.start();
  await vi.advanceTimersByTimeAsync(100);
  const log: string[] = [];
  const stopped = asker.stop().then(() => log.push('stopped'));
  log.push('answered');
  answer();
  await stopped;
  expect(log).toEqual(['answered', 'stopped']);
  expect(vi.getTimerCount()).toBe(0);
});
