/** The markup on a provider's price: hundredths of a percent, or an amount per hour. */
export type Markup = { basisPoints: number } | { microUsdPerHour: number };

/** The markups for one provider. An offer's own markup takes precedence. */
export interface Markups {
  all: Markup | null;
  offers: ReadonlyMap<string, Markup>;
}

export const noMarkups: Markups = { all: null, offers: new Map() };

function markupOf({ all, offers }: Markups, offerId: string): Markup | null {
  return offers.get(offerId) ?? all;
}

/** The price for users, before discounts. A percentage is rounded half up to a micro-USD per hour. */
export function markedUp(providerMicroUsd: number, markups: Markups, offerId: string): number {
  const markup = markupOf(markups, offerId);
  if (markup !== null && 'microUsdPerHour' in markup) return providerMicroUsd + markup.microUsdPerHour;
  return withPercentage(providerMicroUsd, markup);
}

/** The price of a stopped machine for users, before discounts. Amounts per hour apply only to running machines. */
export function markedUpStopped(providerMicroUsd: number, markups: Markups, offerId: string): number {
  return withPercentage(providerMicroUsd, markupOf(markups, offerId));
}

/** Uses integers only, so that no rounding errors accumulate. */
function withPercentage(microUsd: number, markup: Markup | null): number {
  if (markup === null || !('basisPoints' in markup)) return microUsd;
  return Number((BigInt(microUsd) * BigInt(10_000 + markup.basisPoints) + 5_000n) / 10_000n);
}
