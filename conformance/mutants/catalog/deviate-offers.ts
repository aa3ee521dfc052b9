import { isShown, onRule } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import type { WireAnswer } from '../reference/exchange.ts';
import type { Offer } from '../reference/model.ts';
import type { OfferList, Rules } from '../reference/rules.ts';

export type Shown = Record<string, unknown>;

/** Changes how one offer is shown, in one list or in both. */
export function showing(id: string, fields: (shown: Shown) => Shown, only?: OfferList): Mutant['behave'] {
  return onRule('showOffer', (usual, offer, _shown, list) =>
    offer.id === id && (only === undefined || only === list) ? { ...usual, ...fields(usual) } : undefined,
  );
}

/** Changes the regions of one offer in one list. */
export function showingRegions(
  id: string,
  only: OfferList,
  change: (regions: readonly string[]) => readonly string[],
): Mutant['behave'] {
  return onRule('regionsShown', (usual, offer, _regions, list) =>
    offer.id === id && list === only ? change(usual) : undefined,
  );
}

/** Hides an offer in /configurations while `isHidden`. */
export function hiding(isHidden: (offer: Offer, now: number) => boolean): Mutant['behave'] {
  return (rules, hit, clock): Rules => ({
    ...rules,
    isInConfigurations(offer) {
      const hidden = isHidden(offer, clock.now());
      if (hidden) hit();
      return !hidden && rules.isInConfigurations(offer);
    },
  });
}

/** The offers in an answer. */
export const offersOf = (answer: WireAnswer): Shown[] =>
  isShown(answer) ? ((answer.json as { configurations?: Shown[] }).configurations ?? []) : [];

/** Returns a function that counts its calls, for values that differ each time. */
export function counter(): () => number {
  let count = 0;
  return () => ++count;
}
