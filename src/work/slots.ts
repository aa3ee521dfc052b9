import type { Clock } from '../ports/clock.ts';

/**
 * A step that runs longer than this is waiting for the platform: it costs almost nothing and no longer takes a slot.
 */
const SLOW_AFTER_MS = 2_000;
/** Steps under way at once, of each kind, however slow: what the process can hold. */
const HARD_CAP = 1_024;

interface Step<Kind> {
  kind: Kind;
  begunAt: number;
}

/**
 * How many steps may be under way at once, of each kind of resource. A platform whose calls hang delays the rest for as
 * long as it takes a step to count as slow, however many of them hang.
 */
export class Slots<Kind> {
  readonly #clock: Clock;
  readonly #perKind: number;
  readonly #steps = new Set<Step<Kind>>();

  constructor(clock: Clock, perKind: number) {
    this.#clock = clock;
    this.#perKind = perKind;
  }

  /** Takes a slot; what it returns gives the slot back. */
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
