import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { StoreUnavailable } from '../../orchestrator/model/store.ts';
import { describeStore } from '../store.suite.ts';
import { openSqliteStore } from './store.ts';

let folder: string;

function openNew() {
  folder = mkdtempSync(join(tmpdir(), 'berth-store-'));
  return openSqliteStore(join(folder, 'berth.db'));
}

describeStore('the SQLite store', {
  setup: async () => openNew(),
  teardown: async (store) => {
    await store.close();
    rmSync(folder, { recursive: true });
  },
});

it('says that it is unavailable, in reads, transactions and claims, when SQLite cannot answer', async () => {
  const store = openNew();
  await store.close();
  const claim = { owner: 'me', now: 0, leaseUntil: 1, limit: 1, resourceKind: 'instance' } as const;
  await expect(store.read.instances.byId('a')).rejects.toThrow(StoreUnavailable);
  await expect(store.transact((tx) => tx.instances.byId('a'))).rejects.toThrow(StoreUnavailable);
  await expect(store.claimWork(claim)).rejects.toThrow(StoreUnavailable);
  await expect(store.nextWorkAt()).rejects.toThrow(StoreUnavailable);
  rmSync(folder, { recursive: true });
});
