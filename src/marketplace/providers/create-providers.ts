import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Store } from '../model/store.ts';
import { CatalogFeed } from './catalog-feed.ts';
import type { GpuTypes } from './gpu-types.ts';
import { noMarkups } from './markup.ts';
import type { Provider, Providers } from './provider.ts';

/** What the configuration makes of a provider. */
export type ConfiguredProvider = Pick<Provider, 'profile' | 'client' | 'sshProbe'> &
  Partial<Pick<Provider, 'markups'>>;

export interface ProvidersOptions {
  /** In the order of the configuration. */
  providers: readonly ConfiguredProvider[];
  gpuTypes: GpuTypes;
  clock: Clock;
  random: Pick<Random, 'next'>;
  log: Log;
  /** Between two refreshes of a catalog. */
  catalogMs: number;
}

/** The providers of a marketplace, with their catalogs. */
export interface LiveProviders extends Providers {
  /** Refreshes each catalog now, and again and again. */
  start(): void;
  /** Asks all of them once; one that hangs ends with the client's timeout. */
  refresh(): Promise<void>;
  /** What was wrong when the catalog of a provider was read last. */
  problemsOf(id: string): readonly string[];
  /** Stops refreshing, and lets the connections go. */
  close(): Promise<void>;
}

/** @throws {Error} for two providers of one id */
export function createProviders({ providers, catalogMs, ...deps }: ProvidersOptions): LiveProviders {
  const feedOf = new Map<string, CatalogFeed>();
  const byId = new Map<string, Provider>();
  for (const { profile, client, sshProbe, markups = noMarkups } of providers) {
    if (byId.has(profile.id)) throw new Error(`There are two providers with the id ${profile.id}.`);
    const catalog = new CatalogFeed({ ...deps, profile, client, markups, intervalMs: catalogMs });
    feedOf.set(profile.id, catalog);
    byId.set(profile.id, { id: profile.id, profile, client, markups, catalog, sshProbe });
  }
  const ids = [...byId.keys()];
  const feeds = [...feedOf.values()];
  return {
    ids: () => ids,
    get: (id) => byId.get(id),
    start: () => {
      for (const feed of feeds) feed.start();
    },
    refresh: async () => {
      await Promise.all(feeds.map((feed) => feed.refresh()));
    },
    problemsOf: (id) => feedOf.get(id)?.problems ?? [],
    close: async () => {
      // A call that hangs ends with its connection.
      const stopped = feeds.map((feed) => feed.stop());
      await Promise.all([...byId.values()].map(({ client }) => client.close()));
      await Promise.all(stopped);
    },
  };
}

/**
 * Logs each provider that still has deployments or volumes but is no longer configured. They are kept in their last
 * known state, deployments are not billed, and what a user ends is cleaned up once the provider is configured again.
 */
export async function logMissingProviders({
  store: { read },
  providers,
  log,
}: {
  store: Store;
  providers: Providers;
  log: Log;
}): Promise<void> {
  const left = new Map<string, { deployments: number; volumes: number }>();
  const entry = (id: string) => left.get(id) ?? { deployments: 0, volumes: 0 };
  for (const { providerId, count } of await read.deployments.countToSync())
    left.set(providerId, { ...entry(providerId), deployments: count });
  for (const { providerId, count } of await read.volumes.countByProvider())
    left.set(providerId, { ...entry(providerId), volumes: count });
  for (const [provider, counts] of left)
    if (providers.get(provider) === undefined)
      log.error(
        { provider, ...counts },
        'the configuration lacks a provider that still has deployments or volumes, which may cost money: add it again, or clean up there',
      );
}
