import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { account, instance, now } from '../../../test/support/rows/orchestrator-rows.ts';
import { putEmptyDatabase } from '../../../test/support/rows/stores.ts';
import { StoreUnavailable } from '../../orchestrator/model/store.ts';
import { describeStore } from '../store.suite.ts';
import { openReader } from './open-database.ts';
import { openSqliteStore } from './store.ts';

let folder: string;

async function openNew() {
  folder = mkdtempSync(join(tmpdir(), 'berth-store-'));
  const path = join(folder, 'berth.db');
  await putEmptyDatabase('orchestrator', path);
  return openSqliteStore(path);
}

describeStore('the SQLite store', {
  setup: openNew,
  teardown: async (store) => {
    await store.close();
    rmSync(folder, { recursive: true });
  },
});

it('the store reports that it is unavailable, in reads, transactions and claims, when SQLite cannot answer', async () => {
  const store = await openNew();
  await store.close();
  const claim = {
    platform: 'default',
    owner: 'me',
    now: 0,
    leaseUntil: 1,
    limit: 1,
    resourceKind: 'instance',
  } as const;
  await expect(store.read.instances.byId('a')).rejects.toThrow(StoreUnavailable);
  await expect(store.transact((tx) => tx.instances.byId('a'))).rejects.toThrow(StoreUnavailable);
  await expect(store.claimWork(claim)).rejects.toThrow(StoreUnavailable);
  await expect(store.nextWorkAt('default')).rejects.toThrow(StoreUnavailable);
  rmSync(folder, { recursive: true });
});

it('notifies listeners soon after another process has written, but not about its own writes [sqlite-foreign-commit]', async () => {
  const store = await openNew();
  const path = join(folder, 'berth.db');
  const [server, command] = [openSqliteStore(path, { watch: { everyMs: 1 } }), store];
  let notifications = 0;
  const missed = Promise.withResolvers<void>();
  server.subscribe({
    commitsMissed: () => {
      notifications++;
      missed.resolve();
    },
  });
  await server.transact((tx) => tx.credentials.insertAccount(account));
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setTimeout(resolve));
  expect(notifications).toBe(0);
  await command.transact((tx) => tx.instances.insert(instance('a')));
  await missed.promise;
  expect(notifications).toBe(1);
  await server.close();
  await command.close();
  rmSync(folder, { recursive: true });
});

it('the file is as large after many lifetimes as after a few, once their tombstones are pruned', async () => {
  const store = await openNew();
  const path = join(folder, 'berth.db');
  await store.transact((tx) => tx.credentials.insertAccount(account));
  const sizes: number[] = [];
  for (let round = 0; round < 8; round++) {
    for (let batch = 0; batch < 4; batch++)
      await store.transact(async (tx) => {
        for (let n = 0; n < 50; n++) {
          const id = `inst-${randomBytes(16).toString('hex')}`;
          await tx.instances.insert(instance(id, { status: 'DESTROYED', createOpenUntil: null }));
        }
      });
    const prune = () =>
      store.transact((tx) => tx.instances.prune({ platform: 'default', endedBefore: now + 1, limit: 100 }));
    while ((await prune()).ids.length > 0);
    const reader = openReader(path);
    sizes.push(Number(reader.pragma('page_count', { simple: true })));
    reader.close();
  }
  const [first = 0] = sizes;
  expect(first).toBeGreaterThan(50);
  expect(Math.max(...sizes)).toBeLessThan(1.2 * first);
  await store.close();
  rmSync(folder, { recursive: true });
});
