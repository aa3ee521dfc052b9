import type { OrchestratorClient } from '../../client/orchestrator-client.ts';
import type { Configuration } from '../../contract/configuration.ts';
import type { Clock, Random, Timer } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { GpuTypes } from './gpu-types.ts';
import type { Markups } from './markup.ts';
import type { ProviderProfile } from './profile.ts';
import type { CatalogOffer, ProviderCatalog } from './provider.ts';
import { toCatalogOffer } from './to-catalog-offer.ts';

/** Between two refreshes: the interval, more or less a quarter of it. */
const JITTER = 0.25;
/** A provider that renames its offers all the time must not fill the memory. */
const MAX_OFFERS = 5000;

export interface FeedOptions {
  profile: ProviderProfile;
  client: Pick<OrchestratorClient, 'listConfigurations' | 'listAvailability' | 'listVolumeLocations'>;
  clock: Clock;
  random: Pick<Random, 'next'>;
  log: Log;
  gpuTypes: GpuTypes;
  markups: Markups;
  intervalMs: number;
}

/**
 * The catalog of one provider, refreshed periodically. When a call fails, the last catalog stays, and `refreshedAt`
 * says how old it is. A slow provider delays no other feed.
 */
export class CatalogFeed implements ProviderCatalog {
  readonly #options: FeedOptions;
  #refreshedAt: number | null = null;
  #offers: ReadonlyMap<string, CatalogOffer> = new Map();
  #volumeLocations: ProviderCatalog['volumeLocations'] = [];
  #configurations: readonly Configuration[] | null = null;
  #available: readonly Configuration[] | null = null;
  #refreshing: Promise<void> | null = null;
  #timer: Timer | null = null;
  #isStarted = false;
  /** What was logged of the last refresh: the same again is not logged. */
  #problems = new Set<string>();

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  get refreshedAt(): number | null {
    return this.#refreshedAt;
  }

  /** A new map whenever something in it has changed, and only then. */
  get offers(): ReadonlyMap<string, CatalogOffer> {
    return this.#offers;
  }

  /** What was wrong at the last refresh. */
  get problems(): readonly string[] {
    return [...this.#problems];
  }

  get volumeLocations(): ProviderCatalog['volumeLocations'] {
    return this.#volumeLocations;
  }

  /** Refreshes now, and again and again. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    void this.#loop();
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#isStarted = false;
    this.#timer?.cancel();
    await this.#refreshing;
  }

  /** Reads the catalog; never rejects. Concurrent calls share one refresh. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #loop(): Promise<void> {
    await this.refresh();
    if (!this.#isStarted) return;
    const { clock, random, intervalMs } = this.#options;
    const delayMs = intervalMs * (1 - JITTER + 2 * JITTER * random.next());
    this.#timer = clock.setTimer(delayMs, () => void this.#loop());
  }

  async #refresh(): Promise<void> {
    const { client, clock, profile } = this.#options;
    const askedAt = clock.now();
    const problems = new Set<string>();
    const [configurations, available, locations] = await Promise.all([
      this.#call(problems, () => client.listConfigurations()),
      this.#call(problems, () => client.listAvailability()),
      profile.volumes === null ? [] : this.#call(problems, () => client.listVolumeLocations()),
    ]);
    this.#configurations = configurations ?? this.#configurations;
    this.#available = available ?? this.#available;
    if (locations !== null) this.#volumeLocations = locations.map(toVolumeLocation);
    this.#rebuild(problems);
    if (configurations !== null && available !== null) this.#refreshedAt = askedAt;
    this.#logProblems(problems);
  }

  async #call<T>(problems: Set<string>, call: () => Promise<T>): Promise<T | null> {
    try {
      return await call();
    } catch (error) {
      problems.add(`the catalog cannot be read: ${(error as Error).message}`);
      return null;
    }
  }

  #rebuild(problems: Set<string>): void {
    if (this.#configurations === null || this.#available === null) return;
    const { profile, gpuTypes, markups } = this.#options;
    const available = byId(this.#available.filter((configuration) => configuration.available));
    const offers = new Map<string, CatalogOffer>();
    for (const [id, published] of byId(this.#configurations)) {
      if (offers.size >= MAX_OFFERS) {
        problems.add(`it publishes more than ${MAX_OFFERS} offers; the rest is left out`);
        break;
      }
      const now = available.get(id);
      const offer = toCatalogOffer(now === undefined ? published : withPricesOf(published, now), {
        profile,
        gpuTypes,
        markups,
        inStockRegions: now?.regions ?? [],
        onProblem: (message) => problems.add(message),
      });
      if (offer !== null) offers.set(offer.offerId, offer);
    }
    keepWithdrawn(this.#offers, offers);
    if (!isSame(this.#offers, offers)) this.#offers = offers;
  }

  #logProblems(problems: Set<string>): void {
    const { log, profile } = this.#options;
    for (const problem of problems)
      if (!this.#problems.has(problem)) log.warn({ provider: profile.id }, `${profile.id}: ${problem}`);
    if (problems.size === 0 && this.#problems.size > 0)
      log.info({ provider: profile.id }, `${profile.id}: the catalog is read without problems again`);
    this.#problems = problems;
  }
}

/** Of two with one id the first counts. */
function byId(configurations: readonly Configuration[]): Map<string, Configuration> {
  const first = new Map<string, Configuration>();
  for (const configuration of configurations)
    if (!first.has(configuration.id)) first.set(configuration.id, configuration);
  return first;
}

/** O: `/availability` is the real-time answer, and spot prices move. */
function withPricesOf(published: Configuration, now: Configuration): Configuration {
  const { spot_price_per_hour: _, ...rest } = published;
  return {
    ...rest,
    price_per_hour: now.price_per_hour,
    ...(now.spot_price_per_hour !== undefined && { spot_price_per_hour: now.spot_price_per_hour }),
  };
}

/** An offer that is not published any more is sold out, and still known for the deployments that run on it. */
function keepWithdrawn(before: ReadonlyMap<string, CatalogOffer>, offers: Map<string, CatalogOffer>): void {
  for (const [id, offer] of before) {
    if (offers.size >= MAX_OFFERS) return;
    if (!offers.has(id)) offers.set(id, { ...offer, inStockRegions: [], isWithdrawn: true });
  }
}

function isSame(
  before: ReadonlyMap<string, CatalogOffer>,
  after: ReadonlyMap<string, CatalogOffer>,
): boolean {
  return JSON.stringify([...before.values()]) === JSON.stringify([...after.values()]);
}

function toVolumeLocation(
  location: Awaited<ReturnType<OrchestratorClient['listVolumeLocations']>>[number],
): ProviderCatalog['volumeLocations'][number] {
  const { id, name, types = [], country_code: countryCode = null } = location;
  return { id, name, types, countryCode };
}
