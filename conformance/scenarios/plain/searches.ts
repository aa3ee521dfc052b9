import type { Clock } from '../../http/clock.ts';

/** A marketplace looks for the machine of a create without an answer this long, at pauses that double up to the longest. */
const SEARCHED_FOR_MS = 180_000;
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 10_000;

/** The pauses before a marketplace's searches, as `Resources` takes them. */
export function searchesLikeMarketplace(
  clock: Clock,
  signal: AbortSignal,
): (count: number) => Promise<boolean> {
  let since = 0;
  return async (count) => {
    if (count === 1) since = clock.now();
    else if (clock.now() - since >= SEARCHED_FOR_MS) return false;
    await clock.sleep(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(count - 2, 0)), signal);
    return true;
  };
}
