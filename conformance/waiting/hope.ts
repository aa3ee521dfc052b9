import type { Prospect } from './answers.ts';

/** So many answers in a row that can never become right end a wait … */
const HOPELESS_ANSWERS = 20;
/** … if they came over so long a time: longer than the ten seconds for which a replica may lag behind. */
const HOPELESS_MS = 15_000;
/** The same, for a reason that has ended a wait of the run before. */
const KNOWN_REASON_MS = 11_000;
const MOST_RELAPSES = 2;
/** A server that restarts may answer 5xx for so long. */
const RESTART_MS = 60_000;
/** An instance may be shown as DESTROYED for so long before it reads 404. */
export const DESTROYED_SHOWN_MS = 75_000;

/** The reasons for which waits of a run ended in vain. */
export type KnownReasons = Set<string>;

/** Follows the answers of one wait, and says when nothing can come of it. */
export class Hope {
  readonly #known: KnownReasons;
  /** When the awaited change was asked for. */
  readonly #askedAt: number | undefined;
  /** How often what was on the way fell back. */
  #relapses = 0;
  #row: { mayFollow: Prospect['mayFollow']; count: number; since: number } | undefined;

  constructor(known: KnownReasons, askedAt?: number) {
    this.#known = known;
    this.#askedAt = askedAt;
  }

  /** Takes the next answer; returns why the wait is over in vain, or undefined while it goes on. */
  take(prospect: Prospect, at: number): string | undefined {
    if (this.#row?.mayFollow === 'yes' && prospect.mayFollow === 'never') this.#relapses++;
    if (this.#row?.mayFollow !== prospect.mayFollow)
      this.#row = { mayFollow: prospect.mayFollow, count: 0, since: at };
    const row = this.#row;
    row.count++;
    if (prospect.mayFollow === 'yes' || !this.#isHopeless(prospect, row, at)) return undefined;
    this.#known.add(prospect.why);
    return prospect.why;
  }

  #isHopeless(
    { mayFollow, why }: Exclude<Prospect, { mayFollow: 'yes' }>,
    { count, since }: { count: number; since: number },
    at: number,
  ): boolean {
    const lastedMs = at - since;
    // Of two reads a poll interval apart both may be of the last moment.
    if (mayFollow === 'like DESTROYED') return count > 1 && lastedMs > DESTROYED_SHOWN_MS;
    if (this.#relapses >= MOST_RELAPSES && this.#known.has(why)) return true;
    if (count < HOPELESS_ANSWERS) return false;
    // A server that was not back after a minute is not restarting: it crashes on that request.
    if (mayFollow === 'for a while') return this.#known.has(why) || lastedMs >= RESTART_MS;
    if (this.#known.has(why)) return at - Math.min(this.#askedAt ?? since, since) >= KNOWN_REASON_MS;
    return lastedMs >= HOPELESS_MS;
  }
}
