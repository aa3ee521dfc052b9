import type { Draws } from '../../transcript/draws.ts';

/** The pace of a marketplace, in milliseconds. */
export const PACE = {
  /** Time between two polls of an instance at rest. */
  pollMs: [10_000, 30_000],
  /** The part of that span that is used while a change is under way. */
  underWayShare: 0.25,
  /** Polls start at multiples of this. */
  togetherMs: 250,
  /** Time between two polls while a user waits for a stop or a start, and how long that user waits. */
  awaitedMs: 2_000,
  awaitedForMs: 20_000,
  /** Mean time between two reads of the catalogue. It varies by `catalogJitter` in both directions. */
  catalogMs: 30_000,
  catalogJitter: 0.25,
  /** Time between two reads of the account's list. The first is read within the first interval. */
  sweepMs: 120_000,
  /** Pauses before a DELETE is repeated: the first, then twice the last, up to the longest; varied by `retryJitter`. */
  firstRetryMs: 5_000,
  lastRetryMs: 300_000,
  retryJitter: 0.25,
  /** How long an entity tag is sent at most before the instance is read without. */
  longestMarkMs: 600_000,
  /** No user may end a machine before it has run this long. */
  minimumRuntimeMs: 20 * 60_000,
} as const;

/** Draws the moments of one part of a plain run. Each call draws another value. */
export class Pace {
  readonly #draws: Draws;
  readonly #part: string;
  #drawn = 0;

  constructor(draws: Draws, part: string) {
    this.#draws = draws;
    this.#part = part;
  }

  /** From 0 (inclusive) to 1 (exclusive). */
  fraction(): number {
    return this.#draws.fraction(`pace/${this.#part}/${++this.#drawn}`);
  }

  /** A duration between the two, in whole milliseconds. */
  between(leastMs: number, mostMs: number): number {
    return Math.round(leastMs + (mostMs - leastMs) * this.fraction());
  }

  /** One of the items. */
  pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.fraction() * items.length)];
  }

  /** When the next poll is due, on the clock of `begunAt`. `wallMs`: the wall clock at 0 of that clock. */
  nextPollAt(begunAt: number, isUnderWay: boolean, wallMs: number): number {
    const [least, most] = PACE.pollMs;
    const span = (most - least) * (isUnderWay ? PACE.underWayShare : 1);
    const dueAt = begunAt + least + Math.round(this.fraction() * span);
    return Math.max(begunAt + least, dueAt - ((wallMs + dueAt) % PACE.togetherMs));
  }

  catalogPauseMs(): number {
    return Math.round(PACE.catalogMs * (1 - PACE.catalogJitter + 2 * PACE.catalogJitter * this.fraction()));
  }

  firstSweepMs(): number {
    return Math.round(PACE.sweepMs * this.fraction());
  }

  /** The pause after the given number of unsuccessful DELETEs, from 0. */
  retryPauseMs(attempts: number): number {
    const pause = Math.min(PACE.lastRetryMs, PACE.firstRetryMs * 2 ** Math.min(attempts, 10));
    return Math.round(pause * (1 - PACE.retryJitter + 2 * PACE.retryJitter * this.fraction()));
  }
}
