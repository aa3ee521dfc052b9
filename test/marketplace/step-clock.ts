import type { Clock, Timer } from '../../src/ports/clock.ts';

interface Pending {
  at: number;
  callback: () => void;
}

/**
 * A clock that goes on in steps as long as a test wants: what came due within one happens at its end, once, as in a
 * process that had no time before. A month passes in some thousands of steps.
 */
export class StepClock implements Clock {
  #now: number;
  readonly #pending = new Set<Pending>();

  constructor(startAt = Date.UTC(2026, 10, 1)) {
    this.#now = startAt;
  }

  now(): number {
    return this.#now;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const entry = { at: this.#now + Math.max(0, delayMs), callback };
    this.#pending.add(entry);
    return { cancel: () => void this.#pending.delete(entry) };
  }

  /** Moves time on, and fires nothing. */
  step(ms: number): void {
    this.#now += ms;
  }

  /** Fires what came due first; whether there was something. */
  fire(): boolean {
    const first = this.#first();
    if (first === undefined || first.at > this.#now) return false;
    this.#pending.delete(first);
    first.callback();
    return true;
  }

  /** In how many milliseconds something comes due; null: nothing does. */
  nextIn(): number | null {
    const first = this.#first();
    return first === undefined ? null : Math.max(0, Math.ceil(first.at - this.#now));
  }

  #first(): Pending | undefined {
    let first: Pending | undefined;
    for (const entry of this.#pending) if (first === undefined || entry.at < first.at) first = entry;
    return first;
  }
}

/** The clock of one process: once that is dead, nothing of its comes due any more. */
export function mortalClock(clock: Clock, isAlive: () => boolean): Clock {
  return {
    now: () => clock.now(),
    setTimer: (delayMs, callback) =>
      clock.setTimer(delayMs, () => {
        if (isAlive()) callback();
      }),
  };
}
