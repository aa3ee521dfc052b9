import { toTimestamp } from '../contract/values.ts';
import type { ProviderProfile } from '../providers/profile.ts';
import type { CatalogOffer, Providers } from '../providers/provider.ts';

/** After so many intervals without a word, a provider's offers carry a note; after so many more they are not shown. */
const NOTED_AFTER = 3;
const HIDDEN_AFTER = 20;

/** What one provider has on sale, as far as it is shown. */
export interface Shelf {
  profile: ProviderProfile;
  /** Another map whenever something in it has changed. */
  offers: ReadonlyMap<string, CatalogOffer>;
  /** M: Offer, `note`. */
  note: string | null;
}

/** The shelves of the providers that were heard lately, in the order of the configuration. */
export function shelvesOf(
  providers: Providers,
  providerIds: readonly string[],
  { now, catalogMs }: { now: number; catalogMs: number },
): Shelf[] {
  return providerIds.flatMap((id) => {
    const provider = providers.get(id);
    if (provider === undefined) return [];
    const { profile, catalog } = provider;
    const { heardAt, offers } = catalog;
    if (heardAt === null || now - heardAt > HIDDEN_AFTER * catalogMs) return [];
    return [{ profile, offers, note: now - heardAt > NOTED_AFTER * catalogMs ? noteOf(heardAt) : null }];
  });
}

function noteOf(heardAt: number): string {
  return `The provider has not answered since ${toTimestamp(heardAt)}; stock and price may have changed.`;
}

/** Whether both show the same. */
export function areSame(before: readonly Shelf[], after: readonly Shelf[]): boolean {
  return (
    before.length === after.length &&
    before.every((shelf, index) => {
      const other = after[index];
      return shelf.profile === other?.profile && shelf.offers === other.offers && shelf.note === other.note;
    })
  );
}
