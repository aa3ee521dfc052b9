/** A UTC day, in milliseconds. */
export const DAY_MS = 86_400_000;

/** Time, passed in: nothing in the core reads the wall clock. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls `callback` once after `delayMs`. */
  setTimer(delayMs: number, callback: () => void): Timer;
  /** Where processes share a database: how far `now` is ahead of its clock, in milliseconds, by all that is known. */
  offsetMs?(): number;
}

export interface Timer {
  cancel(): void;
}

/** Chance, passed in. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** Bytes fit for secrets and ids. */
  bytes(length: number): Buffer;
}

/** Resolves in the next turn of the event loop: what is ready by now is done before. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
