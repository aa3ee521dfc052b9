import type { Clock, Timer } from '../../ports/clock.ts';
import { DueHeap } from './due-heap.ts';

/** Runs a function for each key when it is due: a few at a time, and never concurrently for one key. */
export class Schedule {
  readonly #clock: Clock;
  readonly #concurrency: () => number;
  readonly #run: (key: string) => Promise<number | null>;
  readonly #due = new DueHeap();
  /** Keys that run and were put meanwhile, by when they are due again. */
  readonly #again = new Map<string, number>();
  readonly #running = new Map<string, Promise<void>>();
  #timer: Timer | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;
  #isStopped = false;

  /**
   * `concurrency` says how many may run at once now. `run` says after how many milliseconds the key is due again; null: not
   * any more. It does not reject.
   */
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

  /** Whether the key would run at once if it was put now. */
  isFree(key: string): boolean {
    return !this.#isStopped && !this.has(key) && this.#running.size < this.#concurrency();
  }

  /** The key is due then at the latest. */
  put(key: string, afterMs: number): void {
    if (this.#isStopped) return;
    const at = this.#clock.now() + afterMs;
    // It becomes due when what runs has ended.
    if (this.#running.has(key)) this.#again.set(key, Math.min(at, this.#again.get(key) ?? at));
    else {
      this.#due.put(key, at);
      if (at < this.#wakesAt) this.#pump();
    }
  }

  /** Those that are due are due so much later. */
  postpone(keys: Iterable<string>, byMs: number): void {
    for (const key of keys) this.#due.postpone(key, byMs);
    if (!this.#isStopped) this.#pump();
  }

  /** Such keys are not due any more. Settles once those of them that run have ended. */
  async drop(isDropped: (key: string) => boolean): Promise<void> {
    this.#due.drop(isDropped);
    for (const key of this.#again.keys()) if (isDropped(key)) this.#again.delete(key);
    await Promise.all([...this.#running].filter(([key]) => isDropped(key)).map(([, run]) => run));
  }

  /** Nothing is due any more. What runs goes on to its end. */
  clear(): void {
    this.#due.clear();
    this.#again.clear();
    this.#sleep();
  }

  /** Begins nothing more, and waits until what runs has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.clear();
    await Promise.all(this.#running.values());
  }

  /** Where as many run as may, what ends pumps again. */
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
