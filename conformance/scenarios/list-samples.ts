import type { Draws } from '../transcript/draws.ts';
import { READ_OF_ONE } from '../transcript/exchange.ts';
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

/**
 * The first request that shows another sample than drawn: one that was not due after the poll before it, or a further poll
 * of the same wait although one was due. `exchanges`: in the order of sending, without superseded ones.
 */
export function firstOfOtherSample(draws: Draws, exchanges: readonly Exchange[]): Exchange | undefined {
  const samples = new ListSamples((label) => draws.fraction(label));
  return exchanges.find((exchange, index) => {
    const before = exchanges[index - 1];
    const isDue = before !== undefined && isPoll(before) && samples.isDue(before.endedAt);
    if (exchange.step !== SAMPLE_STEP) return isDue && isSamePoll(before, exchange);
    samples.taken(exchange);
    return !isDue;
  });
}

/** Whether `Session.poll` sent it. */
const isPoll = ({ step, request: { method, path } }: Exchange): boolean =>
  method === 'GET' && READ_OF_ONE.test(path) && step.endsWith('poll');

const isSamePoll = (one: Exchange, other: Exchange): boolean =>
  one.step === other.step && one.request.path === other.request.path;
