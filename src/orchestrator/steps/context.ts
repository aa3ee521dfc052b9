import type { Clock } from '../../ports/clock.ts';
import type { OwnerRef } from '../model/platform-driver.ts';
import type { ReconcileContext } from '../platform/context.ts';

/**
 * The creates of this process that have not come back, also long after the core stopped waiting for them: a platform
 * that says `gone` proves nothing while one of them is out. One that never comes back is forgotten after
 * `forgetAfterMs`: what it makes later still is found by the sweep.
 */
export class CreateCalls {
  readonly #clock: Clock;
  readonly #forgetAfterMs: number;
  readonly #inFlight = new Map<OwnerRef, Set<{ sentAt: number }>>();

  constructor(clock: Clock, forgetAfterMs: number) {
    this.#clock = clock;
    this.#forgetAfterMs = forgetAfterMs;
  }

  async send<T>(ref: OwnerRef, create: () => Promise<T>): Promise<T> {
    const call = { sentAt: this.#clock.now() };
    const calls = this.#inFlight.get(ref) ?? new Set();
    this.#inFlight.set(ref, calls.add(call));
    try {
      return await create();
    } finally {
      this.#remove(ref, call);
    }
  }

  isInFlight(ref: OwnerRef): boolean {
    const before = this.#clock.now() - this.#forgetAfterMs;
    for (const call of this.#inFlight.get(ref) ?? []) if (call.sentAt <= before) this.#remove(ref, call);
    return this.#inFlight.has(ref);
  }

  #remove(ref: OwnerRef, call: { sentAt: number }): void {
    const calls = this.#inFlight.get(ref);
    if (calls?.delete(call) && calls.size === 0) this.#inFlight.delete(ref);
  }
}

/** What a step of the reconciler uses. */
export interface StepContext extends ReconcileContext {
  creates: CreateCalls;
  /** When this process began: what is older was in other hands before. */
  startedAt: number;
}
