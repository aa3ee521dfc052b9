import { amend, transition } from '../../instances/transition.ts';
import type { ObservedMachine } from '../../model/platform-driver.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { Transaction } from '../../model/store.ts';
import type { Lease } from '../../model/work.ts';
import { confirmMachine } from '../../platform/confirm-gone.ts';
import type { ReconcileContext } from '../../platform/context.ts';
import { afterObservation } from '../../platform/visibility.ts';
import { onMachineFailed, onMachineGone, recordLoss } from '../fail.ts';
import { retry } from '../retry.ts';
import { finish, type Next, settleInstance } from '../settle.ts';
import { afterStop } from './attach-cycle.ts';

/** Reads the machine after a listing differed from the row, and applies what is certain. */
export async function stepObserve(
  context: ReconcileContext,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const found = await confirmMachine(context, record);
  const settle = async (tx: Transaction, current: InstanceRecord): Promise<Next> => {
    if (found.answer === 'unknown') return retry(context, lease, found.reason);
    return found.answer === 'gone'
      ? onMachineGone(context, lease, tx, current, found.observedAt)
      : applyMachine(context, lease, tx, current, found.value);
  };
  await settleInstance(context, lease, settle, { visibility: afterObservation(found) });
}

async function applyMachine(
  context: ReconcileContext,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  machine: ObservedMachine,
): Promise<Next> {
  const now = context.clock.now();
  if (record.status === 'STOPPED')
    return machine.power === 'running' ? { step: 'stop' } : afterStop(context, tx, record);
  if (record.status !== 'ONLINE') return finish;
  switch (machine.power) {
    case 'stopped':
      await transition(tx, record, 'STOPPED', now);
      if (record.spec.onStop === 'release') await tx.claims.release(record.id);
      return finish;
    case 'failed':
      return onMachineFailed(context, lease, tx, record, machine);
    case 'destroying':
      if (record.spec.instanceType !== 'SPOT') return finish;
      return recordLoss(context, lease, tx, record, async () => {
        await transition(tx, record, 'DESTROYING', now);
        return { step: 'destroy' };
      });
    case 'running':
      if (machine.endpoint !== undefined) await amend(tx, record, now, { endpoint: machine.endpoint });
      return finish;
    default:
      return finish;
  }
}
