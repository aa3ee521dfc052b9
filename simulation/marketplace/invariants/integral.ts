import type { Cause } from './causes.ts';

/** A discount of a team, as far as it holds. */
interface Discount {
  percentage: number;
  startsAt: number;
  endsAt: number | null;
}

/** Up to when something was posted as its team's discounts changed, and those by which it was. */
export interface PostedBefore {
  until: number;
  discounts: readonly Discount[];
}

/** The discounts of a subject: what was posted before they changed stays as it was. */
class KnownDiscounts {
  readonly #discounts: readonly Discount[];
  readonly #posted: readonly PostedBefore[];

  constructor(discounts: readonly Discount[], posted: readonly PostedBefore[]) {
    this.#discounts = discounts;
    this.#posted = posted;
  }

  bestAt(at: number): number {
    const before = this.#posted.find(({ until }) => at < until);
    let best = 0;
    for (const { percentage, startsAt, endsAt } of before?.discounts ?? this.#discounts)
      if (startsAt <= at && (endsAt === null || at < endsAt) && percentage > best) best = percentage;
    return best;
  }

  /** When another one may be the best, in order. */
  edges(after: number): number[] {
    const lists = [this.#discounts, ...this.#posted.map(({ discounts }) => discounts)];
    const all = lists.flat().flatMap(({ startsAt, endsAt }) => [startsAt, endsAt ?? startsAt]);
    const posted = this.#posted.map(({ until }) => until);
    return [...new Set([...all, ...posted])].filter((at) => at > after).sort((a, b) => a - b);
  }
}

/** A time in which something cost one rate, as it follows from what happened alone. */
export interface Expected {
  from: number;
  /** Null: it goes on. */
  until: number | null;
  state: Cause['state'];
  rate: bigint;
}

/**
 * What a subject cost when, from the causes alone: no code of production is used here. A deployment has the best
 * discount of each moment; a volume the one that was locked in, until the team has none as good.
 */
export function integrate(
  causes: readonly Cause[],
  discounts: readonly Discount[],
  posted: readonly PostedBefore[],
): Expected[] {
  const known = new KnownDiscounts(discounts, posted);
  const ordered = inOrder(causes);
  return ordered.flatMap((cause, index) => {
    const until = ordered[index + 1]?.at ?? null;
    return cause.state === 'over' ? [] : piecesOf(cause, until, known);
  });
}

/** What a process says whose clock is behind counts from when the one before began. */
function inOrder(causes: readonly Cause[]): Cause[] {
  let latest = 0;
  return causes.map((cause) => {
    latest = Math.max(latest, cause.at);
    return { ...cause, at: latest };
  });
}

function piecesOf(cause: Cause, until: number | null, discounts: KnownDiscounts): Expected[] {
  const pieces: Expected[] = [];
  let known = -1;
  for (const from of [cause.at, ...discounts.edges(cause.at)]) {
    if (until !== null && from >= until) break;
    const percentage = percentageAt(cause, known, discounts.bestAt(from));
    if (percentage === known) continue;
    known = percentage;
    const last = pieces.at(-1);
    if (last !== undefined) last.until = from;
    const rate = (BigInt(cause.originalRate) * BigInt(100 - percentage) + 50n) / 100n;
    pieces.push({ from, until, state: cause.state, rate });
  }
  return pieces;
}

/** `known`: of the piece before; negative: there is none. */
function percentageAt({ state, locked = 0 }: Cause, known: number, best: number): number {
  if (state !== 'stored') return best;
  const held = known < 0 ? locked : known;
  return best < held ? 0 : held;
}

export function costOf({ from, rate }: Expected, until: number): bigint {
  return until <= from ? 0n : (rate * BigInt(until - from)) / 3_600_000n;
}
