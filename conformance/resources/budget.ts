/** A purchase that would pass the cap. Nothing was sent. */
export class BudgetError extends Error {
  override readonly name = 'BudgetError';
}

export interface BudgetParts {
  maxCostUsd: number;
  /** How long anything that is bought now may come to live, in the worst case. */
  longestLifeMs: () => number;
}

/** Reserves the worst case of each purchase before it is made, and refuses the one that would pass the cap. */
export class Budget {
  readonly #parts: BudgetParts;
  #reservedUsd = 0;

  constructor(parts: BudgetParts) {
    this.#parts = parts;
  }

  /** Throws `BudgetError`. */
  reserve(pricePerHour: number): void {
    const usd = worstCaseUsd(pricePerHour, this.#parts.longestLifeMs());
    const { maxCostUsd } = this.#parts;
    if (this.#reservedUsd + usd > maxCostUsd)
      throw new BudgetError(
        `an instance of ${formatUsd(pricePerHour)} an hour could cost ${formatUsd(usd)}, with ${formatUsd(this.#reservedUsd)} already set aside: more than --max-cost ${maxCostUsd.toFixed(2)}`,
      );
    this.#reservedUsd += usd;
  }
}

/** What something costs if it lives for as long as it can. */
export function worstCaseUsd(pricePerHour: number, lifeMs: number): number {
  return (pricePerHour * Math.max(lifeMs, 0)) / 3_600_000;
}

/** As a person reads it, with as many decimals as it needs. */
export function formatUsd(usd: number): string {
  return `$${usd.toFixed(usd !== 0 && usd < 0.095 ? 4 : 2)}`;
}
