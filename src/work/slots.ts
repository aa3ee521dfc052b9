import type { Clock } from '../ports/clock.ts';

/** A longer step is waiting for the platform. It costs almost nothing, so it no longer takes a slot. */
const SLOW_AFTER_MS = 2_000;
/** Most steps of each kind at once, including slow ones: limits the memory of the process. */
const HARD_CAP = 1_024;

interface Step<Kind> {
  kind: Kind;
  begunAt: number;
}

/**
 * Limits the steps that run at once, per resource kind. Calls that hang delay other work only until they count as
 * slow, however many hang.
 */
export class Slots<Kind> {
  readonly #clock: Clock;
  readonly #perKind: number;
  readonly #steps = new Set<Step<Kind>>();

  constructor(clock: Clock, perKind: number) {
    this.#clock = clock;
    this.#perKind = perKind;
  }

  /** Takes a slot. The returned function frees it. */
  take(kind: Kind): () => void {
    const step = { kind, begunAt: this.#clock.now() };
    this.#steps.add(step);
    return () => void this.#steps.delete(step);
  }

  free(kind: Kind): number {
    const steps = [...this.#steps].filter((step) => step.kind === kind);
    const quick = steps.filter((step) => !this.#isSlow(step));
    return Math.max(0, Math.min(this.#perKind - quick.length, HARD_CAP - steps.length));
  }

  #isSlow({ begunAt }: Step<Kind>): boolean {
    return this.#clock.now() - begunAt >= SLOW_AFTER_MS;
  }
}
