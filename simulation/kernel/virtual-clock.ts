import type { Clock } from '../../src/ports/clock.ts';
import type { Scheduler } from '../../src/testing/scheduler.ts';

/** The virtual time at which every run begins. */
export const START_AT = Date.UTC(2026, 10, 21);

/** The true time, for everything but the processes of replicas: providers, clients and the operator. */
export function virtualClock(scheduler: Scheduler): Clock {
  return {
    now: () => Math.floor(scheduler.now),
    setTimer: (delayMs, callback) => scheduler.after(Math.ceil(delayMs), callback),
  };
}

/** The clock for what is prepared before any run. */
export const clockBeforeStart: Clock = {
  now: () => START_AT,
  setTimer: () => ({ cancel: () => undefined }),
};
