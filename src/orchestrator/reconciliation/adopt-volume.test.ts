import { expect, it } from 'vitest';
import { account, now, volume } from '../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import type { Store } from '../model/store.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { reconcileVolume } from './adopt-volume.ts';

const row = volume('v', { sizeGb: 10, type: 'nvme', status: 'AVAILABLE' });
const shown = { ref: row.ownerRef, note: '', createdAt: now, sizeGb: 20, attachedTo: [] };

async function openStore(): Promise<Store> {
  const store = await openTestStore();
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    await tx.volumes.insert(row);
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
      await store.transact((tx) => tx.volumes.update({ ...row, ...changes }));
      return store.transact(body);
    },
  };
  await reconcile(late);
  expect(await store.read.storageClaims.heldBy('v')).toBe(0);
  expect(await store.read.volumes.byId('v')).toMatchObject({ ...changes, sizeGb: 10 });
});
