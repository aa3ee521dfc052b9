import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openSqliteStore } from '../../store/sqlite/store.ts';
import { account, accountId, now } from '../../testing/orchestrator-rows.ts';
import type { VolumeRecord } from '../model/records.ts';
import type { Store } from '../model/store.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { reconcileVolume } from './adopt-volume.ts';

const volume: VolumeRecord = {
  id: 'v',
  accountId,
  platform: 'default',
  ownerRef: 'berth-v',
  name: 'v',
  sizeGb: 10,
  region: 'here',
  type: 'nvme',
  ...{
    status: 'AVAILABLE',
    priceMicroUsdPerHour: 1,
    createdAt: now,
    deletedAt: null,
    createOpenUntil: null,
    host: null,
    destroyOrder: null,
    requestId: null,
  },
};
const shown = { ref: volume.ownerRef, note: '', createdAt: now, sizeGb: 20, attachedTo: [] };

async function openStore(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-adopt-'));
  const store = openSqliteStore(join(folder, 'berth.db'));
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    await tx.volumes.insert(volume);
  });
  return store;
}

const reconcile = (store: Store) =>
  reconcileVolume({ store, clock: { now: () => now } } as unknown as ReconcileContext, shown);

it('claims the storage of a volume that has grown since the backup', async () => {
  const store = await openStore();
  await reconcile(store);
  expect(await store.read.storageClaims.heldBy('v')).toBe(20);
});

it.each([
  ['is proved gone', { status: 'DELETING', deletedAt: now }],
  ['is being deleted', { status: 'DELETING' }],
] as const)('claims nothing for a volume that %s by the time it is written', async (_name, changes) => {
  const store = await openStore();
  const late: Store = {
    ...store,
    transact: async (body) => {
      await store.transact((tx) => tx.volumes.update({ ...volume, ...changes }));
      return store.transact(body);
    },
  };
  await reconcile(late);
  expect(await store.read.storageClaims.heldBy('v')).toBe(0);
  expect(await store.read.volumes.byId('v')).toMatchObject({ ...changes, sizeGb: 10 });
});
