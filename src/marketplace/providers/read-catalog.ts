import type { CallOptions } from '../../client/orchestrator-client.ts';
import type { Configuration } from '../../contract/configuration.ts';
import type { AvailableConfiguration, CatalogRecord, PublishedCatalog } from '../model/catalog-record.ts';
import type { Provider } from './provider.ts';
import { withdrawnOffers } from './published-offers.ts';

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
      ...(spot_price_per_hour !== undefined && { spot_price_per_hour }),
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
