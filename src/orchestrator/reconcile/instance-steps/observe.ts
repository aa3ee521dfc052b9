import type { InstanceRecord } from '../../instances/instance-record.ts';
import { amend, transition } from '../../instances/transition.ts';
import type { ObservedMachine } from '../../ports/platform-driver.ts';
import type { Transaction } from '../../ports/store.ts';
import { afterStop } from '../attach-cycle.ts';
import { look } from '../call-platform.ts';
import type { ReconcileContext } from '../context.ts';
import { retry } from '../retry.ts';
import { finish, type Next, settleInstance } from '../settle.ts';
import type { Lease } from '../work.ts';
import { failInstance } from './fail.ts';

/** A listing differed from a row: the machine itself is looked at, and the row follows what is certain. */
export async function stepObserve(
  context: ReconcileContext,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const found = await look(context, () => context.driver.get(record.ownerRef));
  await settleInstance(context, lease, async (tx, current): Promise<Next> => {
    if (found.answer === 'unknown') return retry(context, lease, found.reason);
    return found.answer === 'gone'
      ? vanished(context, tx, current)
      : follow(context, tx, current, found.value);
  });
}

/** Gone, proved, without our doing. */
export async function vanished(
  context: ReconcileContext,
  tx: Transaction,
  record: InstanceRecord,
): Promise<Next> {
  const now = context.clock.now();
  switch (record.status) {
    case 'STOPPED':
      await transition(tx, record, 'OFFLINE', now, { attachCycle: false });
      return { step: 'destroy' };
    case 'ONLINE':
    case 'STOPPING':
      if (record.spec.instanceType !== 'SPOT')
        return failInstance(context, tx, record, 'The platform no longer has the machine of this instance.');
      await transition(tx, record, 'DESTROYING', now, { attachCycle: false });
      return { step: 'destroy' };
    case 'PROVISIONING':
      return failInstance(context, tx, record, 'The platform no longer has the machine of this instance.');
    default:
      return finish;
  }
}

async function follow(
  context: ReconcileContext,
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
      return failInstance(context, tx, record, `The machine failed: ${machine.detail ?? 'no detail given'}.`);
    case 'destroying':
      if (record.spec.instanceType !== 'SPOT') return finish;
      await transition(tx, record, 'DESTROYING', now);
      return { step: 'destroy' };
    case 'running':
      if (machine.endpoint !== undefined) await amend(tx, record, now, { endpoint: machine.endpoint });
      return finish;
    default:
      return finish;
  }
}
