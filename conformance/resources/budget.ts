import type { Entry } from './ledger.ts';

/** A purchase that would pass the cap. Nothing was sent. */
export class BudgetError extends Error {
  override readonly name = 'BudgetError';
}

export interface BudgetParts {
  maxCostUsd: number;
  entries: readonly Entry[];
  wall: () => number;
  /** How much longer anything that exists may come to live, in the worst case. */
  longestLifeMs: () => number;
  /** Whether something without a price may be bought, for which no cap holds. */
  acceptsUnknownCost: boolean;
}

/** Refuses a purchase that could take the run past its cap: what was spent, and the worst case of all that lives. */
export class Budget {
  readonly #parts: BudgetParts;

  constructor(parts: BudgetParts) {
    this.#parts = parts;
  }

  /**
   * Of things that are bought together; undefined is a price that nobody knows. `lifeMs` where they are known to live no
   * longer than that. Throws `BudgetError`.
   */
  allow(pricesPerHour: readonly (number | undefined)[], lifeMs = this.#parts.longestLifeMs()): void {
    const { maxCostUsd, entries, wall, longestLifeMs, acceptsUnknownCost } = this.#parts;
    if (pricesPerHour.includes(undefined) && !acceptsUnknownCost)
      throw new BudgetError('it has no price, and --accept-unknown-cost was not given');
    const pricePerHour = pricesPerHour.reduce<number>((sum, price) => sum + (price ?? 0), 0);
    const now = wall();
    const others = entries.reduce((sum, entry) => sum + costUsd(entry, now, longestLifeMs()), 0);
    const usd = worstCaseUsd(pricePerHour, lifeMs);
    if (others + usd > maxCostUsd)
      throw new BudgetError(
        `at ${formatUsd(pricePerHour)} an hour it could cost ${formatUsd(usd)}, and ${formatUsd(others)} is spent or set aside: more than --max-cost ${maxCostUsd.toFixed(2)}`,
      );
  }
}

/** What an entry of the ledger costs; one that is open, if it lives for `lifeMs` more. Never made, it costs nothing. */
export function costUsd(entry: Entry, now: number, lifeMs = 0): number {
  if (entry.state === 'refused') return 0;
  const end = entry.goneAt ?? now + lifeMs;
  return worstCaseUsd(entry.pricePerHour ?? 0, end - entry.intendedAt);
}

/** What something costs if it lives for as long as it can. */
export function worstCaseUsd(pricePerHour: number, lifeMs: number): number {
  return (pricePerHour * Math.max(lifeMs, 0)) / 3_600_000;
}

/** As a person reads it, with as many decimals as it needs. */
export function formatUsd(usd: number): string {
  return `$${usd.toFixed(usd !== 0 && usd < 0.095 ? 4 : 2)}`;
}
