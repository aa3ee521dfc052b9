import { transition } from '../../instances/transition.ts';
import { type InstanceRecord, logNames } from '../../model/instance-record.ts';
import { lockVolumesOf } from '../../model/lock-rows.ts';
import type { Transaction } from '../../model/store.ts';
import type { Lease } from '../../model/work.ts';
import { confirmMachine } from '../../platform/confirm-gone.ts';
import type { ReconcileContext } from '../../platform/context.ts';
import { dropAttachments } from '../../volumes/inline-attachments.ts';
import type { StepContext } from '../context.ts';
import { remove, unproved, whatItShowed } from '../removal.ts';
import { finish, type Next, settleInstance } from '../settle.ts';

/**
 * Removes the machine and all that belongs to it, and goes on until the platform shows that it is gone: there
 * is no giving up. DESTROYING then becomes DESTROYED; ERROR and OFFLINE stay as they are, cleaned.
 */
export async function stepDestroy(context: StepContext, lease: Lease, record: InstanceRecord): Promise<void> {
  const { driver } = context;
  const removal = await remove(context, lease, {
    destroy: (cookie) => driver.destroy(record.ownerRef, cookie),
    find: () => confirmMachine(context, record.ownerRef),
  });
  const settle = async (tx: Transaction, current: InstanceRecord): Promise<Next> =>
    unproved(context, lease, current, removal) ?? destroyed(context, tx, current);
  await settleInstance(context, lease, settle, { learnt: whatItShowed(removal) });
}

async function destroyed(
  { clock, log }: ReconcileContext,
  tx: Transaction,
  record: InstanceRecord,
): Promise<Next> {
  const now = clock.now();
  const volumes = await lockVolumesOf(tx, [record.id]);
  for (const attachment of await tx.volumes.attachmentsOfInstance(record.id)) {
    const volume = volumes.get(attachment.volumeId);
    if (volume !== undefined) await dropAttachments(tx, volume, [attachment], now);
  }
  await tx.claims.release(record.id);
  const spec = { ...record.spec, cloudInit: undefined };
  if (record.status === 'DESTROYING') await transition(tx, record, 'DESTROYED', now, { spec });
  log.info({ ...logNames(record), status: record.status }, 'the machine is proved gone');
  return finish;
}
