import { beforeEach, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { Schedule } from './schedule.ts';

let clock: VirtualClock;
let ran: string[];
let pauseMs: number | null;
beforeEach(() => {
  clock = new VirtualClock(0);
  ran = [];
  pauseMs = null;
});

function newSchedule(concurrency: number, tookMs = 0): Schedule {
  return new Schedule(clock, {
    concurrency,
    run: async (key) => {
      ran.push(`${key} at ${clock.now()}`);
      if (tookMs > 0) await new Promise<void>((resolve) => void clock.setTimer(tookMs, resolve));
      return pauseMs;
    },
  });
}

it('runs each task at its time, and again when the task asks for it', async () => {
  const schedule = newSchedule(9);
  schedule.put('b', 20);
  schedule.put('a', 10);
  pauseMs = 100;
  await clock.advance(120);
  expect(ran).toEqual(['a at 10', 'b at 20', 'a at 110', 'b at 120']);
  await schedule.stop();
  await clock.advance(500);
  expect(ran).toHaveLength(4);
  expect(clock.pendingTimers).toBe(0);
});

it('brings tasks forward, and never postpones them', async () => {
  const schedule = newSchedule(9);
  schedule.put('a', 50);
  schedule.put('a', 10);
  schedule.put('a', 90);
  await clock.advance(100);
  expect(ran).toEqual(['a at 10']);
  expect(schedule.has('a')).toBe(false);
});

it('runs a limited number at once, never the same twice, and reruns a task that was woken while it ran', async () => {
  const schedule = newSchedule(2, 10);
  for (const key of ['a', 'b', 'c']) schedule.put(key, 0);
  await clock.advance(5);
  schedule.put('a', 0);
  expect(ran).toEqual(['a at 0', 'b at 0']);
  await clock.advance(100);
  expect(ran).toEqual(['a at 0', 'b at 0', 'c at 10', 'a at 10']);
});

it('forgets a dropped task that still runs, so that it can be put again meanwhile [poll-after-lease]', async () => {
  const schedule = newSchedule(9, 20);
  pauseMs = 100;
  for (const key of ['a', 'b']) schedule.put(key, 0);
  await clock.advance(5);
  const dropped = schedule.drop();
  expect([schedule.has('a'), schedule.has('b')]).toEqual([false, false]);
  schedule.put('a', 30);
  expect(schedule.has('a')).toBe(true);
  await clock.advance(90);
  await dropped;
  expect(ran).toEqual(['a at 0', 'b at 0', 'a at 35']);
  await schedule.stop();
});

it('lets running tasks finish when it stops', async () => {
  const schedule = newSchedule(1, 10);
  pauseMs = 0;
  schedule.put('a', 0);
  schedule.put('b', 0);
  let isStopped = false;
  void schedule.stop().then(() => {
    isStopped = true;
  });
  await clock.advance(9);
  expect(isStopped).toBe(false);
  await clock.advance(50);
  expect([isStopped, ran]).toEqual([true, ['a at 0']]);
});

it('begins the tasks that have been due longest first', async () => {
  const schedule = newSchedule(1, 10);
  for (const [key, afterMs] of [
    ['busy', 0],
    ['late', 8],
    ['early', 2],
    ['middle', 5],
  ] as const)
    schedule.put(key, afterMs);
  await clock.advance(40);
  expect(ran).toEqual(['busy at 0', 'early at 10', 'middle at 20', 'late at 30']);
});

it('resets its timer only for a task due before all others', async () => {
  let timers = 0;
  const { setTimer } = clock;
  clock.setTimer = (...args) => {
    timers++;
    return setTimer.apply(clock, args);
  };
  const schedule = newSchedule(9);
  schedule.put('first', 10);
  for (let number = 0; number < 100; number++) schedule.put(`key-${number}`, 20 + number);
  expect(timers).toBe(1);
  await clock.advance(200);
  expect(ran).toHaveLength(101);
  expect(timers).toBe(101);
});

it('runs tasks in the order of their times, and postpones only those that wait', async () => {
  const schedule = newSchedule(1);
  const times = { a: 5, b: 3, c: 9, d: 1, e: 7 };
  for (const [key, at] of Object.entries(times)) schedule.put(key, at);
  schedule.postpone(['b', 'x'], 5);
  await clock.advance(20);
  expect(ran).toEqual(['d at 1', 'a at 5', 'e at 7', 'b at 8', 'c at 9']);
});
