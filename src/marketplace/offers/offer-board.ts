import { usdFromMicroUsd } from '../../contract/values.ts';
import type { OfferGroup } from '../contract/offer.ts';
import { type InstanceType, toTimestamp } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import { inForce, type SalesPause } from '../model/sales-pause.ts';
import { StoreUnavailable } from '../model/store.ts';
import type { CatalogOffer } from '../providers/provider.ts';
import { createRanks, type Ranks } from './popularity.ts';
import { withoutPaused } from './sales-pauses.ts';
import { isInStock, toOffer, toOfferType } from './to-offer.ts';

/** A row of the offers page, without the parts that depend on the caller and the time. */
export type OfferRow = Omit<OfferGroup, 'popularity'>;

/** Catalog intervals without an answer after which offers carry a note, and after which they are hidden. */
const STALE_AFTER = 3;
const HIDDEN_AFTER = 20;

/** The rows of the offers page, from the catalogs of the providers. */
export class OfferBoard {
  readonly #deps: Pick<Deps, 'providers' | 'clock' | 'store' | 'options'>;
  readonly ranks: () => Promise<Ranks>;
  #pauses: readonly SalesPause[] = [];

  constructor(deps: Pick<Deps, 'providers' | 'clock' | 'store' | 'options'>) {
    this.#deps = deps;
    this.ranks = createRanks(deps.store.read.deployments, deps.clock);
  }

  /** The rows in stock, of one instance type or of all (M: "Sold-out offers are not returned"). */
  async inStock(instanceType: InstanceType | null): Promise<OfferRow[]> {
    const isWanted = (offer: CatalogOffer) => isOfType(offer, instanceType) && isInStock(offer);
    return this.#rows(this.#deps.providers.ids(), isWanted);
  }

  /** All rows of these providers, in stock or not. */
  async all(providerIds: readonly string[], instanceType: InstanceType | null): Promise<OfferRow[]> {
    return this.#rows(providerIds, (offer) => isOfType(offer, instanceType));
  }

  /**
   * The offers of providers with a recent catalog, in the order of the configuration, by GPU type. All offers without a
   * GPU form the CPU row. What is paused counts as sold out.
   */
  async #rows(
    providerIds: readonly string[],
    isWanted: (offer: CatalogOffer) => boolean,
  ): Promise<OfferRow[]> {
    const { providers, clock, options } = this.#deps;
    const pauses = await this.#pausesNow();
    const groups = new Map<string, ShownOffer[]>();
    for (const provider of providerIds.flatMap((id) => providers.get(id) ?? [])) {
      const { profile, catalog } = provider;
      const { refreshedAt, offers } = catalog;
      const age = (clock.now() - (refreshedAt ?? Number.NEGATIVE_INFINITY)) / options.polling.catalogMs;
      if (refreshedAt === null || age > HIDDEN_AFTER) continue;
      const note = age > STALE_AFTER ? staleNote(refreshedAt) : null;
      for (const published of offers.values()) {
        const offer = withoutPaused(pauses, published);
        if (offer.isWithdrawn === true || !isWanted(offer)) continue;
        const group = groups.get(offer.gpuType) ?? [];
        groups.set(offer.gpuType, group);
        group.push({ offer, row: toOffer(offer, profile, note) });
      }
    }
    return [...groups.values()].map(toRow);
  }

  /** If the database does not answer, the pauses stay as they were. */
  async #pausesNow(): Promise<readonly SalesPause[]> {
    const { store, clock } = this.#deps;
    try {
      this.#pauses = await store.read.pauses.list();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
    return inForce(this.#pauses, clock.now());
  }
}

function isOfType({ instanceType: type }: CatalogOffer, instanceType: InstanceType | null): boolean {
  return instanceType === null || type === instanceType || toOfferType(type) === instanceType;
}

function staleNote(refreshedAt: number): string {
  return `The provider has not answered since ${toTimestamp(refreshedAt)}; stock and price may have changed.`;
}

interface ShownOffer {
  offer: CatalogOffer;
  row: OfferGroup['offers'][number];
}

function toRow(group: readonly ShownOffer[]): OfferRow {
  const sorted = group.toSorted(
    (a, b) =>
      a.offer.priceMicroUsdPerHour - b.offer.priceMicroUsdPerHour || compare(a.row.offerId, b.row.offerId),
  );
  const [first] = sorted;
  if (first === undefined) throw new Error('a group of offers is empty');
  const { gpuType, gpuModel, baseGpuType, displayName } = first.offer;
  const interconnectVariants = distinct(group.map(({ row }) => row.interconnectType)).filter(Boolean);
  return {
    gpuType,
    gpuModel,
    baseGpuType,
    displayName,
    interconnectVariants: interconnectVariants.toSorted(compare),
    hasMultipleVariants: interconnectVariants.length > 1,
    ...toStock(group.filter(({ row }) => row.available).map(({ offer }) => offer)),
    providers: distinct(group.map(({ row }) => row.provider)),
    offers: sorted.map(({ row }) => row),
  };
}

/** M: "computed from in-stock offers only". So are the other figures; without stock they are absent. */
function toStock(inStock: readonly CatalogOffer[]) {
  const prices = inStock.map(({ priceMicroUsdPerHour }) => priceMicroUsdPerHour);
  const sum = prices.reduce((total, price) => total + price, 0);
  return {
    totalAvailable: inStock.reduce((total, { inStockRegions }) => total + inStockRegions.length, 0),
    ...(prices.length > 0 && {
      lowestPrice: usdFromMicroUsd(Math.min(...prices)),
      highestPrice: usdFromMicroUsd(Math.max(...prices)),
      averagePrice: usdFromMicroUsd(Math.round(sum / prices.length)),
    }),
  };
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values)];
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
