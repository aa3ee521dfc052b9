/** What the house adds to a provider's price: hundredths of a percent of it, or an amount per hour. */
export type Markup = { basisPoints: number } | { microUsdPerHour: number };

/** Of one provider: that of an offer counts before that of all. */
export interface Markups {
  all: Markup | null;
  offers: ReadonlyMap<string, Markup>;
}

export const noMarkups: Markups = { all: null, offers: new Map() };

function markupOf({ all, offers }: Markups, offerId: string): Markup | null {
  return offers.get(offerId) ?? all;
}

/** What users pay for a running machine before discounts; a percentage is rounded half up to a micro-USD per hour. */
export function markedUp(providerMicroUsd: number, markups: Markups, offerId: string): number {
  const markup = markupOf(markups, offerId);
  if (markup !== null && 'microUsdPerHour' in markup) return providerMicroUsd + markup.microUsdPerHour;
  return withPercentage(providerMicroUsd, markup);
}

/** The same of a stopped machine, to which an amount per hour is not added: that is for what runs. */
export function markedUpStopped(providerMicroUsd: number, markups: Markups, offerId: string): number {
  return withPercentage(providerMicroUsd, markupOf(markups, offerId));
}

/** Integers alone: nothing drifts. */
function withPercentage(microUsd: number, markup: Markup | null): number {
  if (markup === null || !('basisPoints' in markup)) return microUsd;
  return Number((BigInt(microUsd) * BigInt(10_000 + markup.basisPoints) + 5_000n) / 10_000n);
}
