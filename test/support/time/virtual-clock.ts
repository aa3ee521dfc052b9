import type { Clock, Timer } from '../../../src/ports/clock.ts';
import { DueQueue } from '../../../src/work/due-queue.ts';
import { Scheduler } from './scheduler.ts';

/** Without activity, a test's event loop may still have this many turns to go. */
const QUIET_TURNS = 3;

/** A clock that stands still until a test moves it. */
export class VirtualClock implements Clock {
  /** How far time goes on at each reading, as it does on a real clock. */
  msPerReading = 0;
  readonly #time: Scheduler;

  constructor(startAt?: number) {
    this.#time = new Scheduler(startAt, QUIET_TURNS);
  }

  now(): number {
    this.step(this.msPerReading);
    return this.#time.now;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    return this.#time.after(delayMs, callback);
  }

  /** Nothing moves time until the function that it returns is called: `advance` waits for it. */
  hold(): () => void {
    return this.#time.hold();
  }

  get isHeld(): boolean {
    return this.#time.isHeld;
  }

  /** Moves time on by `ms`, firing each timer at its moment and letting promises settle in between. */
  advance(ms: number): Promise<void> {
    return this.#time.runUntil(this.#time.now + ms);
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
  skip(ms: number): Promise<void> {
    this.step(ms);
    return this.advance(0);
  }

  /** Moves time on and fires nothing, as in a process that had no time: see {@link fire}. */
  step(ms: number): void {
    this.#time.jumpTo(this.#time.now + ms);
  }

  /** Fires the timer that came due first; whether there was one. */
  fire(): boolean {
    return this.#time.runNext(this.#time.now);
  }

  /** In how many milliseconds the next timer is due; null: there is none. */
  nextIn(): number | null {
    const at = this.#time.nextAt();
    return at === undefined ? null : Math.max(0, Math.ceil(at - this.#time.now));
  }

  /** How many timers are due at exactly that moment. */
  dueAt(moment: number): number {
    return this.#time.dueAt(moment);
  }

  get pendingTimers(): number {
    return this.#time.pending;
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

/** What passes in one turn of the event loop, in milliseconds. */
const TURN_MS = 20;

/**
 * A clock for tests with real connections and threads. It advances with the turns of this process's event loop, so no
 * deadline passes early on a busy machine. A turn takes a millisecond or more of real time.
 */
export class BriskClock implements Clock {
  #now = Date.now();
  readonly #queue = new DueQueue<() => void>();
  #turn: NodeJS.Timeout | undefined;

  now(): number {
    return Math.floor(this.#now);
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const entry = this.#queue.push(this.#now + Math.max(0, delayMs), callback);
    this.#schedule();
    return { cancel: () => this.#queue.cancel(entry) };
  }

  #schedule(): void {
    if (this.#queue.size > 0) this.#turn ??= setTimeout(() => this.#pass(), 1).unref();
  }

  #pass(): void {
    this.#turn = undefined;
    // One moment a turn: what a timer starts gets its own turn before the next one fires.
    const soonest = this.#queue.nextAt() ?? Number.POSITIVE_INFINITY;
    const at = Math.max(this.#now, Math.min(this.#now + TURN_MS, soonest));
    this.#now = at;
    for (let next = this.#queue.takeUntil(at); next !== undefined; next = this.#queue.takeUntil(at))
      next.item();
    this.#schedule();
  }
}
