import type { Store } from '../marketplace/model/store.ts';
import { marketplaceFormat } from '../store/marketplace/sqlite/marketplace-format.ts';
import { openMarketplaceSqliteStore } from '../store/marketplace/sqlite/store.ts';
import { type DepsOn, openIn, type StoreOptions, type Stores } from './stores.ts';

export const marketplaceStores: Stores<Store> = {
  format: marketplaceFormat,
  openSqlite: openMarketplaceSqliteStore,
  openPostgres: async (url, options) => {
    const { openMarketplacePostgresStore } = await import('../store/marketplace/postgres/store.ts');
    return openMarketplacePostgresStore(url, options);
  },
};

/**
 * The store that `database` names, made where there is none. `beforeWriting` is called when it is found sound or
 * absent; a throw leaves all as it is.
 *
 * @throws {DatabaseRefused}
 */
export async function openMarketplaceStore(
  database: string,
  beforeWriting: () => void,
  options: Pick<StoreOptions, 'log' | 'hearTime'> = {},
): Promise<Store> {
  return openIn(marketplaceStores, database, { beforeWriting, ...options });
}

/** What a command works with beside the server. */
export type MarketplaceStoreDeps = DepsOn<Store>;
