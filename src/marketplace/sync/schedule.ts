import type { Clock, Timer } from '../../ports/clock.ts';

/** Runs a function for each key when it is due: a few at a time, and never concurrently for one key. */
export class Schedule {
  readonly #clock: Clock;
  readonly #concurrency: number;
  readonly #run: (key: string) => Promise<number | null>;
  readonly #due = new Map<string, number>();
  readonly #running = new Map<string, Promise<void>>();
  #timer: Timer | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;
  #isStopped = false;

  /** `run` says after how many milliseconds the key is due again; null: not any more. It does not reject. */
  constructor(
    clock: Clock,
    { concurrency, run }: { concurrency: number; run: (key: string) => Promise<number | null> },
  ) {
    this.#clock = clock;
    this.#concurrency = concurrency;
    this.#run = run;
  }

  has(key: string): boolean {
    return this.#due.has(key) || this.#running.has(key);
  }

  /** The key is due then at the latest. */
  put(key: string, afterMs: number): void {
    if (this.#isStopped) return;
    const at = this.#clock.now() + afterMs;
    this.#due.set(key, Math.min(at, this.#due.get(key) ?? at));
    if (at < this.#wakesAt) this.#pump();
  }

  /** Nothing is due any more. What runs goes on to its end. */
  clear(): void {
    this.#due.clear();
    this.#sleep();
  }

  /** Begins nothing more, and waits until what runs has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.clear();
    await Promise.all(this.#running.values());
  }

  #pump(): void {
    this.#sleep();
    const now = this.#clock.now();
    let nextAt = Number.POSITIVE_INFINITY;
    for (const [key, at] of this.#due) {
      // What ends wakes it.
      if (this.#running.size >= this.#concurrency) return;
      if (this.#running.has(key)) continue;
      if (at <= now) this.#begin(key);
      else nextAt = Math.min(nextAt, at);
    }
    if (nextAt === Number.POSITIVE_INFINITY) return;
    this.#wakesAt = nextAt;
    this.#timer = this.#clock.setTimer(nextAt - now, () => this.#pump());
  }

  #sleep(): void {
    this.#timer?.cancel();
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  #begin(key: string): void {
    this.#due.delete(key);
    const run = this.#run(key).then((afterMs) => {
      this.#running.delete(key);
      if (this.#isStopped) return;
      if (afterMs !== null) this.put(key, afterMs);
      this.#pump();
    });
    this.#running.set(key, run);
  }
}
