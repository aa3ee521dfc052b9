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

/** The system clock as a steady time. `onJump`: see {@link TimeSources}. */
export function createSystemClock({ onJump }: Pick<TimeSources, 'onJump'> = {}): Clock {
  return { now: createSteadyTime({ ...sources, ...(onJump !== undefined && { onJump }) }), setTimer };
}

/** The time of processes that share a database: the database's clock, which `hear` reads. */
export interface SharedClock extends Clock {
  /** See {@link SharedTime.hear}. */
  hear(ask: () => Promise<number>): Promise<void>;
}

/** `told`: see {@link SharedTimeSources}. */
export function createSharedClock(
  listeners: Pick<SharedTimeSources, 'onPause' | 'onJump'> = {},
): SharedClock {
  const time = new SharedTime({ ...sources, ...listeners });
  return { now: () => time.now(), offsetMs: () => time.offsetMs(), hear: (ask) => time.hear(ask), setTimer };
}

/** For short-lived programs, which do not report clock jumps. */
export const systemClock: Clock = createSystemClock();

export const systemRandom: Random = {
  next: () => Math.random(),
  bytes: (length) => randomBytes(length),
};
