import { describe, expect, it } from 'vitest';
import { seed, team, teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { account, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { Duplicate } from '../../marketplace/model/store.ts';
import { StoreUnavailable } from '../../ports/errors.ts';
import { openMemoryMarketplaceStore } from '../marketplace/sqlite/store.ts';
import { openMemoryStore } from './store.ts';

describe('a store in memory', () => {
  it('keeps all of a transaction or nothing, runs one after another, and continues after one that failed', async () => {
    const store = openMemoryStore();
    await store.transact((tx) => tx.credentials.insertAccount(account));
    const ended: string[] = [];
    const broken = store.transact(async (tx) => {
      await tx.instances.insert(instance('a'));
      await new Promise(setImmediate);
      ended.push('broken');
      throw new Error('broken off');
    });
    const kept = store.transact(async (tx) => {
      ended.push('kept');
      await tx.instances.insert(instance('b'));
    });
    await expect(broken).rejects.toThrow('broken off');
    await kept;
    expect(ended).toEqual(['broken', 'kept']);
    expect(await store.read.instances.byId('a')).toBeNull();
    expect(await store.read.instances.byId('b')).not.toBeNull();
    await store.close();
  });

  it('reads a snapshot that later writes do not change, and refuses a second row with a key', async () => {
    const store = openMemoryMarketplaceStore();
    await seed(store);
    const { promise: written, resolve } = Promise.withResolvers<void>();
    const seen = store.snapshot(async (read) => {
      await written;
      return [await read.teams.byId(teamId), await read.teams.byId('later')];
    });
    await store.transact((tx) => tx.teams.insert(team({ id: 'later' })));
    resolve();
    expect(await seen).toEqual([expect.objectContaining({ id: teamId }), null]);
    await expect(store.transact((tx) => tx.teams.insert(team({ id: 'later' })))).rejects.toThrow(Duplicate);
    await store.close();
  });

  it('reports that it is unavailable once it is closed', async () => {
    const store = openMemoryStore();
    await Promise.all([store.close(), store.close()]);
    await expect(store.read.instances.byId('a')).rejects.toThrow(StoreUnavailable);
    await expect(store.transact((tx) => tx.instances.byId('a'))).rejects.toThrow(StoreUnavailable);
  });
});
