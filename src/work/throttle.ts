import type { Clock } from '../ports/clock.ts';

const DURATION_MS = 30_000;
const BURST = 8;
const PER_SECOND = 20;

/**
 * Limits the rate of steps after an outage, when all waiting work is due at once: for half a minute only some steps
 * start per second, so that the platform is not overloaded.
 */
export class Throttle {
  readonly #clock: Clock;
  #begunAt = Number.NEGATIVE_INFINITY;
  #taken = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(): void {
    this.#begunAt = this.#clock.now();
    this.#taken = 0;
  }

  /** How many steps may start now. */
  get allowance(): number {
    const pastMs = this.#clock.now() - this.#begunAt;
    if (pastMs < 0 || pastMs >= DURATION_MS) return Number.POSITIVE_INFINITY;
    return Math.max(0, Math.floor(BURST + (pastMs * PER_SECOND) / 1000) - this.#taken);
  }

  /** Wait before the next step may start, in milliseconds. */
  get pauseMs(): number {
    return this.allowance > 0 ? 0 : 1000 / PER_SECOND;
  }

  take(count: number): void {
    this.#taken += count;
  }
}
