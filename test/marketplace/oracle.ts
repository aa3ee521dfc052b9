/**
 * What a subject is from a moment on, and its price before discounts, in micro-USD per hour. A volume has the discount
 * with it that was locked in at that moment.
 */
export interface Chapter {
  at: number;
  state: 'running' | 'stopped' | 'stored' | 'over';
  microUsdPerHour: bigint;
  lockedPercentage?: number;
}

/** A discount of a team, from `from` until `until`, or without an end. */
export interface KnownDiscount {
  percentage: number;
  from: number;
  until: number | null;
}

const MS_PER_HOUR = 3_600_000n;

/**
 * The exact integral of the price, rounded down once for each piece of one price. It knows what was seen from outside,
 * and nothing of segments, slices or databases.
 */
export function integral(
  chapters: readonly Chapter[],
  discounts: readonly KnownDiscount[],
  until: number,
): bigint {
  let total = 0n;
  for (const [index, chapter] of chapters.entries()) {
    if (chapter.state === 'over') continue;
    const end = Math.min(until, chapters[index + 1]?.at ?? until);
    for (const piece of piecesOf(chapter, discounts, end)) total += costOf(chapter, piece);
  }
  return total;
}

/** M: Offer: "The higher of the volume-based and admin-assigned discounts applies". */
export function bestPercentage(discounts: readonly KnownDiscount[], at: number): number {
  return discounts
    .filter(({ from, until }) => from <= at && (until === null || at < until))
    .reduce((best, { percentage }) => Math.max(best, percentage), 0);
}

interface Piece {
  from: number;
  until: number;
  percentage: number;
}

function piecesOf(chapter: Chapter, discounts: readonly KnownDiscount[], end: number): Piece[] {
  const moments = discounts
    .flatMap(({ from, until }) => (until === null ? [from] : [from, until]))
    .filter((at) => at > chapter.at && at < end)
    .sort((a, b) => a - b);
  const pieces: Piece[] = [];
  let locked = chapter.lockedPercentage;
  for (const from of [chapter.at, ...moments]) {
    const best = bestPercentage(discounts, from);
    // A locked discount stays until the team has none as good, and is gone then.
    if (locked !== undefined && best < locked) locked = 0;
    const percentage = locked ?? best;
    const last = pieces.at(-1);
    if (last !== undefined && (last.percentage === percentage || last.from === from)) {
      last.percentage = percentage;
      continue;
    }
    if (last !== undefined) last.until = from;
    pieces.push({ from, until: end, percentage });
  }
  return pieces;
}

function costOf({ microUsdPerHour }: Chapter, { from, until, percentage }: Piece): bigint {
  if (until <= from) return 0n;
  // Rounded half up to a micro-USD.
  const paid = (microUsdPerHour * BigInt(100 - percentage) + 50n) / 100n;
  return (paid * BigInt(until - from)) / MS_PER_HOUR;
}
