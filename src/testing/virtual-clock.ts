import type { Clock, Timer } from '../ports/clock.ts';

interface Pending {
  at: number;
  callback: () => void;
}

/** A clock that stands still until a test moves it. */
export class VirtualClock implements Clock {
  #now: number;
  readonly #pending = new Set<Pending>();
  #holds = 0;

  constructor(startAt = Date.UTC(2026, 10, 21)) {
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

  /** Nothing moves time until the function that it returns is called: `advance` waits for it. */
  hold(): () => void {
    this.#holds += 1;
    return () => {
      this.#holds -= 1;
    };
  }

  get isHeld(): boolean {
    return this.#holds > 0;
  }

  /** Moves time on by `ms`, firing each timer at its moment and letting promises settle in between. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.#settle();
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#pending.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await this.#settle();
    }
    this.#now = end;
  }

  /** Moves time on tick by tick until the promise has settled; returns what it came to. */
  async advanceUntilSettled<T>(promise: Promise<T>, tickMs: number): Promise<T> {
    let isSettled = false;
    const end = (): void => {
      isSettled = true;
    };
    promise.then(end, end);
    while (!isSettled) await this.advance(tickMs);
    return promise;
  }

  /** Moves time on in one go, as a machine that slept: each timer that was due meanwhile fires once, afterwards. */
  async skip(ms: number): Promise<void> {
    this.#now += ms;
    await this.advance(0);
  }

  /** Moves time on and fires nothing, as in a process that had no time: see {@link fire}. */
  step(ms: number): void {
    this.#now += ms;
  }

  /** Fires the timer that came due first; whether there was one. */
  fire(): boolean {
    const first = this.#next(this.#now);
    if (first === undefined) return false;
    this.#pending.delete(first);
    first.callback();
    return true;
  }

  /** In how many milliseconds the next timer is due; null: there is none. */
  nextIn(): number | null {
    const first = this.#next(Number.POSITIVE_INFINITY);
    return first === undefined ? null : Math.max(0, Math.ceil(first.at - this.#now));
  }

  /** How many timers are due at exactly that moment. */
  dueAt(moment: number): number {
    return [...this.#pending].filter(({ at }) => at === moment).length;
  }

  get pendingTimers(): number {
    return this.#pending.size;
  }

  #next(end: number): Pending | undefined {
    let earliest: Pending | undefined;
    for (const entry of this.#pending)
      if (entry.at <= end && (earliest === undefined || entry.at < earliest.at)) earliest = entry;
    return earliest;
  }

  /** Lets holds end, and then microtasks and immediates that are already due run. */
  async #settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.isHeld) quiet = -1;
    }
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
