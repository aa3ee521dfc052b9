import type { Cause } from './causes.ts';

/** A discount of a team, and when it applies. */
interface Discount {
  percentage: number;
  startsAt: number;
  endsAt: number | null;
}

/** When a team's discounts changed: up to when costs had been posted, and the discounts that they were posted with. */
export interface PostedBefore {
  until: number;
  discounts: readonly Discount[];
}

/** The discounts of a deployment or volume. Costs that were posted before a change keep the discounts of then. */
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

  /** The moments at which another discount may become the best, in order. */
  edges(after: number): number[] {
    const lists = [this.#discounts, ...this.#posted.map(({ discounts }) => discounts)];
    const all = lists.flat().flatMap(({ startsAt, endsAt }) => [startsAt, endsAt ?? startsAt]);
    const posted = this.#posted.map(({ until }) => until);
    return [...new Set([...all, ...posted])].filter((at) => at > after).sort((a, b) => a - b);
  }
}

/** A time span with one rate, computed from the recorded events alone. */
export interface Expected {
  from: number;
  /** Null: it goes on. */
  until: number | null;
  state: Cause['state'];
  rate: bigint;
}

/**
 * The rates of a deployment or volume over time, computed from the causes without production code. A deployment has the
 * best discount of each moment. A volume keeps its locked-in discount until the team has none as good.
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

/** A process whose clock is behind may report a cause too early: it counts from the cause before it. */
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

/** `known`: the percentage of the span before; negative: there is none. */
function percentageAt({ state, locked = 0 }: Cause, known: number, best: number): number {
  if (state !== 'stored') return best;
  const held = known < 0 ? locked : known;
  return best < held ? 0 : held;
}

export function costOf({ from, rate }: Expected, until: number): bigint {
  return until <= from ? 0n : (rate * BigInt(until - from)) / 3_600_000n;
}
