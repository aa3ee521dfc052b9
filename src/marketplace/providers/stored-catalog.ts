import type { VolumeLocation } from '../../contract/volume.ts';
import type { Log } from '../../ports/log.ts';
import type { CatalogRecord, PublishedCatalog } from '../model/catalog-record.ts';
import type { GpuTypes } from './gpu-types.ts';
import type { Markups } from './markup.ts';
import type { ProviderProfile } from './profile.ts';
import type { CatalogOffer, ProviderCatalog } from './provider.ts';
import { publishedOffers } from './read-catalog.ts';
import { toCatalogOffer } from './to-catalog-offer.ts';

interface CatalogContext {
  profile: ProviderProfile;
  gpuTypes: GpuTypes;
  markups: Markups;
  log: Log;
}

/** A provider's catalog from the database, combined with the configuration of this process. */
export class StoredCatalog implements ProviderCatalog {
  readonly #context: CatalogContext;
  /** The version of the shown record; null: none is shown. */
  version: number | null = null;
  refreshedAt: number | null = null;
  offers: ReadonlyMap<string, CatalogOffer> = new Map();
  volumeLocations: ProviderCatalog['volumeLocations'] = [];
  /** Problems of the last reading, and of offers that cannot be sold. */
  problems: readonly string[] = [];

  constructor(context: CatalogContext) {
    this.#context = context;
  }

  show({ version, readAt, published, problems: found }: CatalogRecord): void {
    const problems = new Set(found);
    if (published !== null) {
      this.offers = this.#toOffers(published, (problem) => problems.add(problem));
      const hasVolumes = this.#context.profile.volumes !== null;
      this.volumeLocations = hasVolumes ? published.volumeLocations.map(toVolumeLocation) : [];
    }
    this.version = version;
    this.refreshedAt = readAt;
    this.#logProblems([...problems]);
  }

  #toOffers(
    published: PublishedCatalog,
    onProblem: (problem: string) => void,
  ): ReadonlyMap<string, CatalogOffer> {
    const { profile, gpuTypes, markups } = this.#context;
    const context = { profile, gpuTypes, markups, onProblem };
    const offers = new Map<string, CatalogOffer>();
    for (const { configuration, inStockRegions } of publishedOffers(published, onProblem).values())
      offers.set(configuration.id, toCatalogOffer(configuration, { ...context, inStockRegions }));
    const withdrawn = { ...context, inStockRegions: [], onProblem: () => undefined };
    for (const configuration of published.withdrawn)
      offers.set(configuration.id, { ...toCatalogOffer(configuration, withdrawn), isWithdrawn: true });
    return offers;
  }

  #logProblems(problems: readonly string[]): void {
    const { log, profile } = this.#context;
    for (const problem of problems)
      if (!this.problems.includes(problem)) log.warn({ provider: profile.id }, `${profile.id}: ${problem}`);
    if (problems.length === 0 && this.problems.length > 0)
      log.info({ provider: profile.id }, `${profile.id}: the catalog is read without problems again`);
    this.problems = problems;
  }
}

function toVolumeLocation(location: VolumeLocation): ProviderCatalog['volumeLocations'][number] {
  const { id, name, types = [], country_code: countryCode = null } = location;
  return { id, name, types, countryCode };
}
