import type { Clock } from '../ports/clock.ts';
import type { OwnerRef } from '../ports/platform-driver.ts';

interface Call {
  lastSentAt: number;
  /** How many have not come back, also long after the core stopped waiting for them. */
  out: number;
}

/**
 * What this process knows of the creates that it sent. A platform that says `gone` proves nothing while one of
 * them may still turn up.
 */
export class CreateCalls {
  readonly #clock: Clock;
  readonly #visibleWithinMs: number;
  /** An earlier process may have sent one until now. */
  readonly #startedAt: number;
  readonly #calls = new Map<OwnerRef, Call>();

  constructor(clock: Clock, visibleWithinMs: number) {
    this.#clock = clock;
    this.#visibleWithinMs = visibleWithinMs;
    this.#startedAt = clock.now();
  }

  async send<T>(ref: OwnerRef, create: () => Promise<T>): Promise<T> {
    const call = this.#calls.get(ref) ?? { lastSentAt: 0, out: 0 };
    this.#calls.set(ref, call);
    call.lastSentAt = this.#clock.now();
    call.out++;
    try {
      return await create();
    } finally {
      call.out--;
    }
  }

  /** How long the platform may still show a machine where it says `gone` now, in milliseconds. */
  mayTurnUpForMs(ref: OwnerRef): number {
    const lastSentAt = this.#calls.get(ref)?.lastSentAt ?? this.#startedAt;
    return Math.max(0, lastSentAt + this.#visibleWithinMs - this.#clock.now());
  }

  isOut(ref: OwnerRef): boolean {
    return (this.#calls.get(ref)?.out ?? 0) > 0;
  }

  /** Nothing will be asked about it any more. */
  forget(ref: OwnerRef): void {
    this.#calls.delete(ref);
  }
}
