import type { Clock, Timer } from '../ports/clock.ts';

/** What passes in one turn of the event loop, in milliseconds. */
const TURN_MS = 20;

/**
 * A clock for tests with real connections and threads. It goes by this process's turns and not by the wall: a machine
 * that is busy with other work has no less time for anything, and nobody waits for what has nothing to do. A turn takes a
 * millisecond or more of real time.
 */
export class BriskClock implements Clock {
  #now = Date.now();
  readonly #pending = new Map<object, { at: number; callback: () => void }>();
  #turn: NodeJS.Timeout | undefined;

  now(): number {
    return Math.floor(this.#now);
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const key = {};
    this.#pending.set(key, { at: this.#now + Math.max(0, delayMs), callback });
    this.#schedule();
    return { cancel: () => void this.#pending.delete(key) };
  }

  #schedule(): void {
    if (this.#pending.size > 0) this.#turn ??= setTimeout(() => this.#pass(), 1).unref();
  }

  #pass(): void {
    this.#turn = undefined;
    const end = this.#now + TURN_MS;
    // One moment a turn: what a timer starts gets its own turn before the next one fires.
    const at = Math.min(end, ...[...this.#pending.values()].map((timer) => timer.at));
    this.#now = Math.max(this.#now, at);
    for (const [key, timer] of this.#pending)
      if (timer.at <= this.#now) {
        this.#pending.delete(key);
        timer.callback();
      }
    this.#schedule();
  }
}
