import type { Exchange } from '../transcript/records.ts';

/** The step of a sample. */
export const SAMPLE_STEP = 'sample/list';

/** The time between two samples, at least and at most. */
const LEAST_MS = 5000;
const MOST_MS = 15_000;
/** A list that takes long is read so much less often. */
const TIMES_ITS_DURATION = 10;

/** When to list the account's instances in a wait: at drawn moments, which no cache can be in step with. */
export class ListSamples {
  readonly #draw: (label: string) => number;
  #count = 0;
  #nextAt: number | undefined;

  /** `draw` yields a number from 0 to 1 for a label. */
  constructor(draw: (label: string) => number) {
    this.#draw = draw;
  }

  /** Whether a list is due after a poll that ended at `now`, in milliseconds. */
  isDue(now: number): boolean {
    this.#nextAt ??= now + this.#gapMs();
    return now >= this.#nextAt;
  }

  /** Plans the next one. A list that is longer than the suite reads is not sampled again. */
  taken({ sentAt, endedAt, failure }: Exchange): void {
    const pauseMs = Math.max(this.#gapMs(), (endedAt - sentAt) * TIMES_ITS_DURATION);
    this.#nextAt = failure?.kind === 'too_large' ? Number.POSITIVE_INFINITY : endedAt + pauseMs;
  }

  #gapMs(): number {
    return LEAST_MS + this.#draw(`list samples/${++this.#count}`) * (MOST_MS - LEAST_MS);
  }
}
