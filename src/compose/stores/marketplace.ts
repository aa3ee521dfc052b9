import type { Store } from '../../marketplace/model/store.ts';
import { marketplaceFormat } from '../../store/marketplace/sqlite/marketplace-format.ts';
import { openMarketplaceSqliteStore } from '../../store/marketplace/sqlite/store.ts';
import { type DepsOn, openIn, type StoreOptions, type Stores } from './stores.ts';

export const marketplaceStores: Stores<Store> = {
  format: marketplaceFormat,
  openSqlite: openMarketplaceSqliteStore,
  openPostgres: async (url, options) => {
    const { openMarketplacePostgresStore } = await import('../../store/marketplace/postgres/store.ts');
    return openMarketplacePostgresStore(url, options);
  },
};

/**
 * Opens the store, and creates it if missing. `beforeWriting` runs once the database is found undamaged or missing; if
 * it throws, nothing is changed.
 * @throws {DatabaseRefused}
 */
export async function openMarketplaceStore(
  database: string,
  beforeWriting: () => void,
  options: Pick<StoreOptions, 'log' | 'hearTime'> = {},
): Promise<Store> {
  return openIn(marketplaceStores, database, { beforeWriting, ...options });
}

/** The dependencies of a command that runs beside the server. */
export type MarketplaceStoreDeps = DepsOn<Store>;
