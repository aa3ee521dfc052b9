import { randomBytes } from 'node:crypto';
import type { Clock, Random } from '../orchestrator/ports/clock.ts';
import { createSteadyTime, type TimeSources } from './steady-time.ts';

/** This machine's time, made steady. `onJump`: see {@link TimeSources}. */
export function createSystemClock({ onJump }: Pick<TimeSources, 'onJump'> = {}): Clock {
  return {
    now: createSteadyTime({
      wallNow: () => Date.now(),
      monotonicNow: () => performance.now(),
      ...(onJump !== undefined && { onJump }),
    }),
    setTimer(delayMs, callback) {
      const timeout = setTimeout(callback, Math.max(0, delayMs));
      timeout.unref();
      return { cancel: () => clearTimeout(timeout) };
    },
  };
}

/** For what runs shortly, and has nobody to tell of a clock that jumps. */
export const systemClock: Clock = createSystemClock();

export const systemRandom: Random = {
  next: () => Math.random(),
  bytes: (length) => randomBytes(length),
};
