import type { Clock } from '../../ports/clock.ts';
import type { OwnerRef } from '../model/platform-driver.ts';
import type { ReconcileContext } from '../platform/context.ts';

/**
 * The create calls of this process that are in flight, also after their deadline: while one is, a `gone` of the
 * platform proves nothing. A call that never returns is forgotten after `forgetAfterMs`; the sweep finds what it
 * makes later.
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
  /** When this process started: older rows were handled by another one. */
  startedAt: number;
}
