import type { Entry } from './ledger.ts';

/** A purchase that would exceed the cost cap. Nothing was sent. */
export class BudgetError extends Error {
  override readonly name = 'BudgetError';
}

export interface BudgetParts {
  maxCostUsd: number;
  entries: readonly Entry[];
  wall: () => number;
  /** How much longer a resource may live, in the worst case. */
  longestLifeMs: () => number;
  /** Whether resources without a known price may be created. The cap cannot cover them. */
  acceptsUnknownCost: boolean;
}

/**
 * Refuses a purchase that could exceed the cost cap: money spent so far plus the worst case of everything still alive.
 */
export class Budget {
  readonly #parts: BudgetParts;

  constructor(parts: BudgetParts) {
    this.#parts = parts;
  }

  /**
   * Checks resources that are created together. An undefined price is unknown. `lifeMs` is their maximum lifetime, if
   * known. Throws `BudgetError`.
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
        `at ${formatUsd(pricePerHour)} an hour it could cost ${formatUsd(usd)}, and ${formatUsd(others)} is spent or set aside${doubtsOf(entries)}: more than --max-cost ${maxCostUsd} (--max-cost ${ceilToCent(others + usd)} would do)`,
      );
  }
}

/** Explains that money is reserved for creates without a clear answer, which is otherwise surprising. */
function doubtsOf(entries: readonly Entry[]): string {
  const unclear = entries.filter(({ state, id }) => state === 'unknown' && id === undefined);
  if (unclear.length === 0) return '';
  const what = unclear.length === 1 ? 'a create' : `${unclear.length} creates`;
  return ` (with what ${what} without a clear answer may have made: ${unclear.map(({ step }) => step).join(', ')})`;
}

/**
 * The cost of a ledger entry. An open one is assumed to live for another `lifeMs`. A resource that was never created
 * costs nothing.
 */
export function costUsd(entry: Entry, now: number, lifeMs = 0): number {
  if (entry.state === 'refused') return 0;
  const end = entry.goneAt ?? now + lifeMs;
  return worstCaseUsd(entry.pricePerHour ?? 0, end - entry.intendedAt);
}

/** The cost of a resource that lives for the longest possible time. */
export function worstCaseUsd(pricePerHour: number, lifeMs: number): number {
  return (pricePerHour * Math.max(lifeMs, 0)) / 3_600_000;
}

/** A value for `--max-cost` that is no less. */
export function ceilToCent(usd: number): string {
  return (Math.ceil(usd * 100 - 1e-6) / 100).toFixed(2);
}

/** Formats USD with two to six decimals, so that every price is exact. */
export function formatUsd(usd: number): string {
  return `$${usd.toFixed(6).replace(/0{1,4}$/, '')}`;
}
