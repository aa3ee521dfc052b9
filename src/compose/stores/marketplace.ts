import type { Store } from '../../marketplace/model/store.ts';
import { marketplaceFormat } from '../../store/marketplace/sqlite/marketplace-format.ts';
import { openMarketplaceSqliteStore } from '../../store/marketplace/sqlite/store.ts';
import type { DepsOn, Stores } from './stores.ts';

export const marketplaceStores: Stores<Store> = {
  format: marketplaceFormat,
  openSqlite: openMarketplaceSqliteStore,
  openPostgres: async (url, options) => {
    const { openMarketplacePostgresStore } = await import('../../store/marketplace/postgres/store.ts');
    return openMarketplacePostgresStore(url, options);
  },
};

/** The dependencies of a command that runs beside the server. */
export type MarketplaceStoreDeps = DepsOn<Store>;
