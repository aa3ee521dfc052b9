import type { Clock, Timer } from '../../ports/clock.ts';
import { DueKeys } from './due-keys.ts';

/** Runs a function for each key when it is due, with limited concurrency and never concurrently for one key. */
export class Schedule {
  readonly #clock: Clock;
  readonly #concurrency: () => number;
  readonly #run: (key: string) => Promise<number | null>;
  readonly #due = new DueKeys();
  /** Keys that were put while they ran, with their next due time. */
  readonly #again = new Map<string, number>();
  readonly #running = new Map<string, Promise<void>>();
  #timer: Timer | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;
  #isStopped = false;

  /** `run` returns the milliseconds until the key is due again; null: never. It must not reject. */
  constructor(
    clock: Clock,
    { concurrency, run }: { concurrency: () => number; run: (key: string) => Promise<number | null> },
  ) {
    this.#clock = clock;
    this.#concurrency = concurrency;
    this.#run = run;
  }

  has(key: string): boolean {
    return this.#due.has(key) || this.#running.has(key);
  }

  /** Makes the key due after `afterMs` or earlier. */
  put(key: string, afterMs: number): void {
    if (this.#isStopped) return;
    const at = this.#clock.now() + afterMs;
    // The key becomes due once its current run has ended.
    if (this.#running.has(key)) this.#again.set(key, Math.min(at, this.#again.get(key) ?? at));
    else {
      this.#due.put(key, at);
      if (at < this.#wakesAt) this.#pump();
    }
  }

  /** Delays the keys that are scheduled. */
  postpone(keys: Iterable<string>, byMs: number): void {
    for (const key of keys) this.#due.postpone(key, byMs);
    if (!this.#isStopped) this.#pump();
  }

  /** Removes the matching keys. Settles once their current runs have ended. */
  async drop(isDropped: (key: string) => boolean): Promise<void> {
    this.#due.drop(isDropped);
    for (const key of this.#again.keys()) if (isDropped(key)) this.#again.delete(key);
    await Promise.all([...this.#running].filter(([key]) => isDropped(key)).map(([, run]) => run));
  }

  /** Removes all keys. Current runs continue. */
  clear(): void {
    this.#due.clear();
    this.#again.clear();
    this.#sleep();
  }

  /** Starts nothing more and waits for the current runs. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.clear();
    await Promise.all(this.#running.values());
  }

  /** Starts due keys up to the limit. At the limit, the end of a run calls it again. */
  #pump(): void {
    const now = this.#clock.now();
    let nextAt = this.#due.nextAt();
    while (nextAt !== null && this.#running.size < this.#concurrency()) {
      if (nextAt > now) {
        this.#sleepUntil(nextAt, now);
        return;
      }
      const key = this.#due.take();
      if (key !== undefined) this.#begin(key);
      nextAt = this.#due.nextAt();
    }
    this.#sleep();
  }

  #sleepUntil(at: number, now: number): void {
    if (at === this.#wakesAt) return;
    this.#timer?.cancel();
    this.#wakesAt = at;
    this.#timer = this.#clock.setTimer(at - now, () => {
      this.#wakesAt = Number.POSITIVE_INFINITY;
      this.#pump();
    });
  }

  #sleep(): void {
    this.#timer?.cancel();
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  #begin(key: string): void {
    const run = this.#run(key).then((afterMs) => {
      this.#running.delete(key);
      if (this.#isStopped) return;
      const again = this.#again.get(key);
      this.#again.delete(key);
      if (again !== undefined) this.#due.put(key, again);
      if (afterMs !== null) this.#due.put(key, this.#clock.now() + afterMs);
      this.#pump();
    });
    this.#running.set(key, run);
  }
}
