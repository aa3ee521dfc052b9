import { expect, it } from 'vitest';
import { StoreUnavailable } from '../../ports/errors.ts';
import { openMarketplaceSqliteStore } from '../marketplace/sqlite/store.ts';
import { describeMarketplaceStore } from '../marketplace/store.suite.ts';
import { describeStore } from '../store.suite.ts';
import { openSqliteStore } from './store.ts';

describeStore('the store in memory', {
  setup: async () => openSqliteStore(':memory:'),
  teardown: (store) => store.close(),
  hasOneConnection: true,
});

describeMarketplaceStore("the marketplace's store in memory", {
  setup: async () => openMarketplaceSqliteStore(':memory:'),
  teardown: (store) => store.close(),
  hasOneConnection: true,
});

it('the store reports that it is unavailable once it is closed', async () => {
  const store = openSqliteStore(':memory:');
  await store.close();
  await expect(store.read.instances.byId('a')).rejects.toThrow(StoreUnavailable);
  await expect(store.transact((tx) => tx.instances.byId('a'))).rejects.toThrow(StoreUnavailable);
});
