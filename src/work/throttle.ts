import type { Clock } from '../ports/clock.ts';

const DURATION_MS = 30_000;
const BURST = 8;
const PER_SECOND = 20;

/**
 * After an outage all that waited is due at once. For half a minute it is taken up at a pace, so that a platform which
 * has just got up is not run over.
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

  /** How many steps may be taken up now. */
  get allowance(): number {
    const pastMs = this.#clock.now() - this.#begunAt;
    if (pastMs < 0 || pastMs >= DURATION_MS) return Number.POSITIVE_INFINITY;
    return Math.max(0, Math.floor(BURST + (pastMs * PER_SECOND) / 1000) - this.#taken);
  }

  /** How long nothing more may be taken up, in milliseconds. */
  get pauseMs(): number {
    return this.allowance > 0 ? 0 : 1000 / PER_SECOND;
  }

  take(count: number): void {
    this.#taken += count;
  }
}
