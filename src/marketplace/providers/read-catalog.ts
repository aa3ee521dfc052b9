import type { CallOptions } from '../../client/orchestrator-client.ts';
import type { Configuration } from '../../contract/configuration.ts';
import type { AvailableConfiguration, CatalogRecord, PublishedCatalog } from '../model/catalog-record.ts';
import type { Provider } from './provider.ts';
import { mistakeOf } from './to-catalog-offer.ts';

/**
 * Reads a provider's catalog; never rejects. Parts that cannot be read stay as in `before`. `readAt` advances when both
 * configurations and availability were read, the version only with changes.
 */
export async function readCatalog(
  { id, profile, client }: Pick<Provider, 'id' | 'profile' | 'client'>,
  before: CatalogRecord | null,
  { now, ...call }: CallOptions & { now: number },
): Promise<CatalogRecord> {
  const problems = new Set<string>();
  const [configurations, available, volumeLocations] = await Promise.all([
    attempt(problems, () => client.listConfigurations(call)),
    attempt(problems, async () => toAvailable(await client.listAvailability(undefined, call))),
    profile.volumes === null ? [] : attempt(problems, () => client.listVolumeLocations(call)),
  ]);
  const last = before?.published ?? null;
  const published = combine(last, { configurations, available, volumeLocations });
  const after = { published, problems: [...problems] };
  const isSame =
    before !== null &&
    JSON.stringify(after) === JSON.stringify({ published: last, problems: before.problems });
  return {
    ...after,
    providerId: id,
    version: isSame ? before.version : (before?.version ?? 0) + 1,
    readAt: configurations !== null && available !== null ? now : (before?.readAt ?? null),
  };
}

async function attempt<T>(problems: Set<string>, call: () => Promise<T>): Promise<T | null> {
  try {
    return await call();
  } catch (error) {
    problems.add(`the catalog cannot be read: ${(error as Error).message}`);
    return null;
  }
}

function toAvailable(configurations: readonly Configuration[]): AvailableConfiguration[] {
  return configurations
    .filter(({ available }) => available)
    .map(({ id, regions, price_per_hour, spot_price_per_hour }) => ({
      id,
      regions,
      price_per_hour,
      spot_price_per_hour,
    }));
}

function combine(
  last: PublishedCatalog | null,
  read: { [Part in Exclude<keyof PublishedCatalog, 'withdrawn'>]: PublishedCatalog[Part] | null },
): PublishedCatalog | null {
  const configurations = read.configurations ?? last?.configurations;
  const available = read.available ?? last?.available;
  if (configurations === undefined || available === undefined) return null;
  return {
    configurations,
    available,
    withdrawn: withdrawnOffers(last, { configurations, available }),
    volumeLocations: read.volumeLocations ?? last?.volumeLocations ?? [],
  };
}

/** Limits the memory used by a provider that keeps renaming its offers. */
const MAX_OFFERS = 5000;

/** A configuration at its current price, with the regions where it can be deployed now. */
export interface PublishedOffer {
  configuration: Configuration;
  inStockRegions: readonly string[];
}

/** The sold offers of a catalog, by id. Calls `onProblem` for each one that is left out. */
export function publishedOffers(
  { configurations, available }: Pick<PublishedCatalog, 'configurations' | 'available'>,
  onProblem: (message: string) => void,
): Map<string, PublishedOffer> {
  const availableById = byId(available);
  const offers = new Map<string, PublishedOffer>();
  for (const [id, published] of byId(configurations)) {
    if (offers.size >= MAX_OFFERS) {
      onProblem(`it publishes more than ${MAX_OFFERS} offers; the rest are left out`);
      break;
    }
    const now = availableById.get(id);
    const configuration = now === undefined ? published : withPricesOf(published, now);
    const mistake = mistakeOf(configuration);
    if (mistake !== null) onProblem(mistake);
    else offers.set(id, { configuration, inStockRegions: now?.regions ?? [] });
  }
  return offers;
}

/** Offers that are no longer sold, the last withdrawn first. Deployments may still run on them. */
function withdrawnOffers(
  before: PublishedCatalog | null,
  after: Pick<PublishedCatalog, 'configurations' | 'available'>,
): Configuration[] {
  if (before === null) return [];
  const sold = publishedOffers(after, () => undefined);
  const known = publishedOffers(before, () => undefined);
  return [...known.values()]
    .map(({ configuration }) => configuration)
    .concat(before.withdrawn)
    .filter(({ id }) => !sold.has(id))
    .slice(0, MAX_OFFERS - sold.size);
}

/** Maps by id. Of two configurations with one id, the first is used. */
function byId<C extends AvailableConfiguration>(configurations: readonly C[]): Map<string, C> {
  const first = new Map<string, C>();
  for (const configuration of configurations)
    if (!first.has(configuration.id)) first.set(configuration.id, configuration);
  return first;
}

function withPricesOf(published: Configuration, now: AvailableConfiguration): Configuration {
  const { spot_price_per_hour: _, ...rest } = published;
  return {
    ...rest,
    price_per_hour: now.price_per_hour,
    ...(now.spot_price_per_hour !== undefined && { spot_price_per_hour: now.spot_price_per_hour }),
  };
}
