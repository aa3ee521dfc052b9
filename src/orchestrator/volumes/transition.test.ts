import { expect, it } from 'vitest';
import { account, accountId, instance, now, volume } from '../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import type { VolumeStatus } from '../../contract/volume.ts';
import { recordedOrder } from '../model/destroy-order.ts';
import type { Attachment, VolumeRecord } from '../model/records.ts';
import { deleteVolume } from './delete.ts';
import { updateAttachmentStatus } from './transition.ts';

async function openStore(row: VolumeRecord, states: readonly Attachment['state'][] = []) {
  const store = await openTestStore();
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    await tx.volumes.insert(row);
    for (const [index, state] of states.entries()) {
      await tx.instances.insert(instance(`i-${index}`));
      await tx.volumes.putAttachment({ volumeId: 'v', instanceId: `i-${index}`, state });
    }
  });
  return store;
}

const cases: [VolumeStatus, Attachment['state'][], VolumeStatus][] = [
  ['AVAILABLE', ['attached'], 'ATTACHED'],
  ['AVAILABLE', ['attached', 'detaching'], 'DETACHING'],
  ['ATTACHED', [], 'AVAILABLE'],
  ['ATTACHED', ['attaching'], 'ATTACHING'],
  ['ATTACHED', ['attached'], 'ATTACHED'],
];

it.each(cases)(
  'a volume that is %s, with its attachments %j, becomes %s, also where no single step leads there',
  async (status, states, expected) => {
    const row = volume('v', { status });
    const store = await openStore(row, states);
    await store.transact((tx) => updateAttachmentStatus(tx, row));
    expect((await store.read.volumes.byId('v'))?.status).toBe(expected);
  },
);

it('a DELETE of a volume whose create failed keeps the order that the failure recorded', async () => {
  const destroyOrder = recordedOrder({ reason: 'failed_create', by: 'server-1', at: now });
  const store = await openStore(volume('v', { status: 'ERROR', destroyOrder }));
  await deleteVolume({ store, clock: { now: () => now + 5 } as never }, accountId, 'v');
  expect(await store.read.volumes.byId('v')).toMatchObject({ status: 'DELETING', destroyOrder });
});
