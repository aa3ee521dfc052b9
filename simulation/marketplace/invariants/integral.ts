import type { Cause } from './causes.ts';

/** A discount of a team, as far as it holds. */
interface Discount {
  percentage: number;
  startsAt: number;
  endsAt: number | null;
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
export function integrate(causes: readonly Cause[], discounts: readonly Discount[]): Expected[] {
  return causes.flatMap((cause, index) => {
    const until = causes[index + 1]?.at ?? null;
    return cause.state === 'over' ? [] : piecesOf(cause, until, discounts);
  });
}

function piecesOf(cause: Cause, until: number | null, discounts: readonly Discount[]): Expected[] {
  const pieces: Expected[] = [];
  let known = -1;
  for (const from of [cause.at, ...edges(discounts, cause.at)]) {
    if (until !== null && from >= until) break;
    const percentage = percentageAt(cause, known, bestAt(discounts, from));
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

function edges(discounts: readonly Discount[], after: number): number[] {
  const all = discounts.flatMap(({ startsAt, endsAt }) => [startsAt, endsAt ?? startsAt]);
  return [...new Set(all)].filter((at) => at > after).sort((a, b) => a - b);
}

function bestAt(discounts: readonly Discount[], at: number): number {
  let best = 0;
  for (const { percentage, startsAt, endsAt } of discounts)
    if (startsAt <= at && (endsAt === null || at < endsAt) && percentage > best) best = percentage;
  return best;
}
