import { setImmediate } from './timers.ts';

/** A UTC day, in milliseconds. */
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** A clock, passed in: nothing in the core reads the wall clock. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls `callback` once after `delayMs`. */
  setTimer(delayMs: number, callback: () => void): Timer;
  /** Estimated lead of `now` over the clock of a shared database, in milliseconds. */
  offsetMs?(): number;
}

export interface Timer {
  cancel(): void;
}

/** A source of randomness, passed in. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** Bytes fit for secrets and ids. */
  bytes(length: number): Buffer;
}

/** Resolves in the next turn of the event loop, after everything that is ready now. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
