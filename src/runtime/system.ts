import { randomBytes } from 'node:crypto';
import type { Clock, Random, Timer } from '../ports/clock.ts';
import { SharedTime, type SharedTimeSources } from './shared-time.ts';
import { createSteadyTime, type TimeSources } from './steady-time.ts';

const sources = { wallNow: () => Date.now(), monotonicNow: () => performance.now() };

function setTimer(delayMs: number, callback: () => void): Timer {
  const timeout = setTimeout(callback, Math.max(0, delayMs));
  timeout.unref();
  return { cancel: () => clearTimeout(timeout) };
}

/** This machine's time, made steady. `onJump`: see {@link TimeSources}. */
export function createSystemClock({ onJump }: Pick<TimeSources, 'onJump'> = {}): Clock {
  return { now: createSteadyTime({ ...sources, ...(onJump !== undefined && { onJump }) }), setTimer };
}

/** This machine's time where several share a database: that of the database, which it is to hear. */
export interface SharedClock extends Clock {
  /** See {@link SharedTime.hear}. */
  hear(ask: () => Promise<number>): Promise<void>;
}

/** `told`: see {@link SharedTimeSources}. */
export function createSharedClock(told: Pick<SharedTimeSources, 'onPause' | 'onJump'> = {}): SharedClock {
  const time = new SharedTime({ ...sources, ...told });
  return { now: () => time.now(), offsetMs: () => time.offsetMs(), hear: (ask) => time.hear(ask), setTimer };
}

/** For what runs shortly, and has nobody to tell of a clock that jumps. */
export const systemClock: Clock = createSystemClock();

export const systemRandom: Random = {
  next: () => Math.random(),
  bytes: (length) => randomBytes(length),
};
