/** `burst` requests at once, then `perSecond`. */
export interface Bucket {
  perSecond: number;
  burst: number;
}

const MAX_KEYS = 500_000;

/** A token bucket for each key, kept as one number: the time at which the bucket is full again (GCRA). */
export class Meter {
  readonly #intervalMs: number;
  readonly #toleranceMs: number;
  readonly #fullAt = new Map<string, number>();

  constructor({ perSecond, burst }: Bucket) {
    this.#intervalMs = 1000 / perSecond;
    this.#toleranceMs = (burst - 1) * this.#intervalMs;
  }

  /** Undoes one `take`. */
  giveBack(key: string): void {
    const fullAt = this.#fullAt.get(key);
    if (fullAt !== undefined) this.#fullAt.set(key, fullAt - this.#intervalMs);
  }

  /** Takes one; returns how long to wait where there is none, and then takes nothing. */
  take(key: string, now: number): number {
    const fullAt = this.#fullAt.get(key) ?? now;
    const waitMs = fullAt - this.#toleranceMs - now;
    if (waitMs > 0) return waitMs;
    if (this.#fullAt.size >= MAX_KEYS) this.#fullAt.clear();
    this.#fullAt.set(key, Math.max(fullAt, now) + this.#intervalMs);
    return 0;
  }
}
