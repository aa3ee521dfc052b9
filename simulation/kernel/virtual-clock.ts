import type { Clock } from '../../src/ports/clock.ts';
import type { Scheduler } from './scheduler.ts';

/** The virtual time at which every run begins. */
export const START_AT = Date.UTC(2026, 10, 21);

/** The true time, for what is no process of a replica: platforms, providers and the operator. */
export function virtualClock(scheduler: Scheduler): Clock {
  return {
    now: () => Math.floor(scheduler.now),
    setTimer: (delayMs, callback) => scheduler.after(Math.ceil(delayMs), callback),
  };
}

/** The clock of what is done before a run begins. */
export const clockBeforeStart: Clock = {
  now: () => START_AT,
  setTimer: () => ({ cancel: () => undefined }),
};
