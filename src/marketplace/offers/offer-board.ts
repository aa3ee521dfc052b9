import type { Clock } from '../../ports/clock.ts';
import { type InstanceType, toTimestamp } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import type { CatalogOffer, Providers } from '../providers/provider.ts';
import { groupOffers, type OfferRow, type ProviderOffers } from './group-offers.ts';
import { Popularity, type Ranks } from './popularity.ts';
import { toOfferType } from './to-offer.ts';

/** The rows of the offers page. They are rebuilt when a catalog has changed, not for each request. */
export class OfferBoard {
  readonly #providers: Providers;
  readonly #clock: Clock;
  readonly #catalogMs: number;
  readonly #popularity: Popularity;
  #providerOffers: readonly ProviderOffers[] = [];
  readonly #rows = new Map<InstanceType | null, readonly OfferRow[]>();

  constructor({ providers, clock, store, options }: Pick<Deps, 'providers' | 'clock' | 'store' | 'options'>) {
    this.#providers = providers;
    this.#clock = clock;
    this.#catalogMs = options.polling.catalogMs;
    this.#popularity = new Popularity(store.read.deployments, clock);
  }

  ranks(): Promise<Ranks> {
    return this.#popularity.ranks();
  }

  /** The rows in stock, of one instance type or of all. The result must not be modified. */
  inStock(instanceType: InstanceType | null): readonly OfferRow[] {
    const providerOffers = this.#visibleOffers(this.#providers.ids());
    if (!areSame(this.#providerOffers, providerOffers)) {
      this.#providerOffers = providerOffers;
      this.#rows.clear();
    }
    const kept = this.#rows.get(instanceType);
    if (kept !== undefined) return kept;
    const rows = groupOffers(providerOffers, { isSoldOutIncluded: false, isWanted: isOfType(instanceType) });
    this.#rows.set(instanceType, rows);
    return rows;
  }

  /** All rows of these providers, in stock or not. */
  all(providerIds: readonly string[], instanceType: InstanceType | null): readonly OfferRow[] {
    return groupOffers(this.#visibleOffers(providerIds), {
      isSoldOutIncluded: true,
      isWanted: isOfType(instanceType),
    });
  }

  #visibleOffers(providerIds: readonly string[]): ProviderOffers[] {
    const now = this.#clock.now();
    return visibleOffers(this.#providers, providerIds, { now, catalogMs: this.#catalogMs });
  }
}

function isOfType(instanceType: InstanceType | null): (offer: CatalogOffer) => boolean {
  return ({ instanceType: type }) =>
    instanceType === null || type === instanceType || toOfferType(type) === instanceType;
}

/** Catalog intervals without an answer after which offers carry a note, and after which they are hidden. */
const STALE_AFTER = 3;
const HIDDEN_AFTER = 20;

/** The offers of providers with a recent catalog, in the order of the configuration. */
function visibleOffers(
  providers: Providers,
  providerIds: readonly string[],
  { now, catalogMs }: { now: number; catalogMs: number },
): ProviderOffers[] {
  return providerIds.flatMap((id) => {
    const provider = providers.get(id);
    if (provider === undefined) return [];
    const { profile, catalog } = provider;
    const { refreshedAt, offers } = catalog;
    if (refreshedAt === null || now - refreshedAt > HIDDEN_AFTER * catalogMs) return [];
    return [
      { profile, offers, note: now - refreshedAt > STALE_AFTER * catalogMs ? staleNote(refreshedAt) : null },
    ];
  });
}

function staleNote(refreshedAt: number): string {
  return `The provider has not answered since ${toTimestamp(refreshedAt)}; stock and price may have changed.`;
}

/** Whether both show the same offers and notes. */
function areSame(before: readonly ProviderOffers[], after: readonly ProviderOffers[]): boolean {
  return (
    before.length === after.length &&
    before.every((shelf, index) => {
      const other = after[index];
      return shelf.profile === other?.profile && shelf.offers === other.offers && shelf.note === other.note;
    })
  );
}
