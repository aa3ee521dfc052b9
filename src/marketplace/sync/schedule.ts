import type { Clock, Timer } from '../../ports/clock.ts';
import { type Due, DueQueue } from '../../work/due-queue.ts';

/** Runs a function for each key when it is due, with limited concurrency and never concurrently for one key. */
export class Schedule {
  readonly #clock: Clock;
  readonly #concurrency: number;
  readonly #run: (key: string) => Promise<number | null>;
  readonly #queue = new DueQueue<string>();
  /** The entry of each key in the queue. */
  readonly #due = new Map<string, Due<string>>();
  /** Keys that were put while they ran, with their next due time. */
  readonly #again = new Map<string, number>();
  readonly #running = new Map<string, Promise<void>>();
  /** Keys whose current run began before they were dropped: it does not make them due again. */
  readonly #dropped = new Set<string>();
  #timer: Timer | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;
  #isStopped = false;

  /** `run` returns the milliseconds until the key is due again; null: never. It must not reject. */
  constructor(
    clock: Clock,
    { concurrency, run }: { concurrency: number; run: (key: string) => Promise<number | null> },
  ) {
    this.#clock = clock;
    this.#concurrency = concurrency;
    this.#run = run;
  }

  has(key: string): boolean {
    if (this.#due.has(key) || this.#again.has(key)) return true;
    return this.#running.has(key) && !this.#dropped.has(key);
  }

  /** Makes the key due after `afterMs` or earlier. */
  put(key: string, afterMs: number): void {
    if (this.#isStopped) return;
    const at = this.#clock.now() + afterMs;
    // The key becomes due once its current run has ended.
    if (this.#running.has(key)) this.#again.set(key, Math.min(at, this.#again.get(key) ?? at));
    else {
      this.#advance(key, at);
      if (at < this.#wakesAt) this.#pump();
    }
  }

  /** Delays the keys that are scheduled. */
  postpone(keys: Iterable<string>, byMs: number): void {
    for (const key of keys) {
      const at = this.#due.get(key)?.at;
      if (at !== undefined) this.#set(key, at + byMs);
    }
    if (!this.#isStopped) this.#pump();
  }

  /** Removes all keys. Settles once their current runs have ended. */
  async drop(): Promise<void> {
    this.#queue.clear();
    this.#due.clear();
    this.#again.clear();
    for (const key of this.#running.keys()) this.#dropped.add(key);
    await Promise.all(this.#running.values());
  }

  /** Starts nothing more and waits for the current runs. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#sleepUntil(Number.POSITIVE_INFINITY);
    await this.drop();
  }

  /** Starts due keys up to the limit. At the limit, the end of a run calls it again. */
  #pump(): void {
    const now = this.#clock.now();
    while (this.#running.size < this.#concurrency) {
      const due = this.#queue.takeUntil(now);
      if (due === undefined) {
        this.#sleepUntil(this.#queue.nextAt() ?? Number.POSITIVE_INFINITY);
        return;
      }
      this.#due.delete(due.item);
      this.#begin(due.item);
    }
    this.#sleepUntil(Number.POSITIVE_INFINITY);
  }

  /** Makes the key due at `at` or earlier. */
  #advance(key: string, at: number): void {
    const known = this.#due.get(key);
    if (known === undefined || known.at > at) this.#set(key, at);
  }

  #set(key: string, at: number): void {
    const known = this.#due.get(key);
    if (known !== undefined) this.#queue.cancel(known);
    this.#due.set(key, this.#queue.push(at, key));
  }

  #sleepUntil(at: number): void {
    if (at === this.#wakesAt) return;
    this.#timer?.cancel();
    this.#wakesAt = at;
    if (at === Number.POSITIVE_INFINITY) return;
    this.#timer = this.#clock.setTimer(at - this.#clock.now(), () => {
      this.#wakesAt = Number.POSITIVE_INFINITY;
      this.#pump();
    });
  }

  #begin(key: string): void {
    const run = this.#run(key).then((afterMs) => {
      this.#running.delete(key);
      const isDropped = this.#dropped.delete(key);
      if (this.#isStopped) return;
      const again = this.#again.get(key);
      this.#again.delete(key);
      if (again !== undefined) this.#advance(key, again);
      if (afterMs !== null && !isDropped) this.#advance(key, this.#clock.now() + afterMs);
      this.#pump();
    });
    this.#running.set(key, run);
  }
}
