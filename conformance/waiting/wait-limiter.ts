import type { Prospect } from './answers.ts';

/** This many consecutive answers that can never become right end a wait … */
const WRONG_ANSWERS = 20;
/** … if they span at least this time, which is longer than the ten seconds for which a replica may lag behind. */
const WRONG_FOR_MS = 15_000;
/** The same, for a reason that has already ended a wait of the run. */
const KNOWN_REASON_MS = 11_000;
const MOST_RELAPSES = 2;
/** How long a server that restarts may answer 5xx. */
const RESTART_MS = 60_000;
/** How long an instance may be shown as DESTROYED before it reads 404. */
export const DESTROYED_SHOWN_MS = 75_000;

/** The reasons for which waits of a run were given up. */
export type KnownReasons = Set<string>;

/** Follows the answers of one wait, and decides when it cannot succeed any more. */
export class WaitLimiter {
  readonly #known: KnownReasons;
  /** When the awaited change was requested. */
  readonly #askedAt: number | undefined;
  /** How often progress reverted to an answer that cannot become right. */
  #relapses = 0;
  #row: { mayFollow: Prospect['mayFollow']; count: number; since: number } | undefined;

  constructor(known: KnownReasons, askedAt?: number) {
    this.#known = known;
    this.#askedAt = askedAt;
  }

  /** Records the next answer. Returns why the wait is given up, or undefined while it continues. */
  take(prospect: Prospect, at: number): string | undefined {
    if (this.#row?.mayFollow === 'yes' && prospect.mayFollow === 'never') this.#relapses++;
    if (this.#row?.mayFollow !== prospect.mayFollow)
      this.#row = { mayFollow: prospect.mayFollow, count: 0, since: at };
    const row = this.#row;
    row.count++;
    if (prospect.mayFollow === 'yes' || !this.#isOver(prospect, row, at)) return undefined;
    this.#known.add(prospect.why);
    return prospect.why;
  }

  #isOver(
    { mayFollow, why }: Exclude<Prospect, { mayFollow: 'yes' }>,
    { count, since }: { count: number; since: number },
    at: number,
  ): boolean {
    const lastedMs = at - since;
    // Two reads a poll interval apart may both fall into the last moment.
    if (mayFollow === 'destroyed') return count > 1 && lastedMs > DESTROYED_SHOWN_MS;
    if (this.#relapses >= MOST_RELAPSES && this.#known.has(why)) return true;
    if (count < WRONG_ANSWERS) return false;
    // A server that is not back after a minute is not restarting: it crashes on that request.
    if (mayFollow === 'server-error') return this.#known.has(why) || lastedMs >= RESTART_MS;
    if (this.#known.has(why)) return at - Math.min(this.#askedAt ?? since, since) >= KNOWN_REASON_MS;
    return lastedMs >= WRONG_FOR_MS;
  }
}
