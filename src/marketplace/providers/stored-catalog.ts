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
  #version: number | null = null;
  #refreshedAt: number | null = null;
  #offers: ReadonlyMap<string, CatalogOffer> = new Map();
  #volumeLocations: ProviderCatalog['volumeLocations'] = [];
  /** The problems already logged for the last version. */
  #problems = new Set<string>();

  constructor(context: CatalogContext) {
    this.#context = context;
  }

  /** The version of the shown record; null: none is shown. */
  get version(): number | null {
    return this.#version;
  }

  get refreshedAt(): number | null {
    return this.#refreshedAt;
  }

  /** A new map if and only if an offer has changed. */
  get offers(): ReadonlyMap<string, CatalogOffer> {
    return this.#offers;
  }

  get volumeLocations(): ProviderCatalog['volumeLocations'] {
    return this.#volumeLocations;
  }

  /** Problems of the last reading, and of offers that cannot be sold. */
  get problems(): readonly string[] {
    return [...this.#problems];
  }

  /** Confirms the shown record: it was read again and has not changed. */
  confirm(readAt: number | null): void {
    this.#refreshedAt = readAt;
  }

  show({ version, readAt, published, problems: found }: CatalogRecord): void {
    const problems = new Set(found);
    if (published !== null) {
      const offers = this.#toOffers(published, (problem) => problems.add(problem));
      if (!isSame(this.#offers, offers)) this.#offers = offers;
      const hasVolumes = this.#context.profile.volumes !== null;
      this.#volumeLocations = hasVolumes ? published.volumeLocations.map(toVolumeLocation) : [];
    }
    this.#version = version;
    this.#refreshedAt = readAt;
    this.#logProblems(problems);
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

  #logProblems(problems: Set<string>): void {
    const { log, profile } = this.#context;
    for (const problem of problems)
      if (!this.#problems.has(problem)) log.warn({ provider: profile.id }, `${profile.id}: ${problem}`);
    if (problems.size === 0 && this.#problems.size > 0)
      log.info({ provider: profile.id }, `${profile.id}: the catalog is read without problems again`);
    this.#problems = problems;
  }
}

function isSame(
  before: ReadonlyMap<string, CatalogOffer>,
  after: ReadonlyMap<string, CatalogOffer>,
): boolean {
  return JSON.stringify([...before.values()]) === JSON.stringify([...after.values()]);
}

function toVolumeLocation(location: VolumeLocation): ProviderCatalog['volumeLocations'][number] {
  const { id, name, types = [], country_code: countryCode = null } = location;
  return { id, name, types, countryCode };
}
