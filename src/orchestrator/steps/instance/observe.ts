import { amend, transition } from '../../instances/transition.ts';
import type { ObservedMachine } from '../../model/platform-driver.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { Transaction } from '../../model/store.ts';
import type { Lease } from '../../model/work.ts';
import { confirmMachine } from '../../platform/confirm-gone.ts';
import type { Calling, Recording } from '../../platform/context.ts';
import { afterObservation } from '../../platform/visibility.ts';
import { onMachineFailed, onMachineGone, recordLoss, retry } from '../fail.ts';
import { type Decide, finish, type Next, settleInstance } from '../settle.ts';
import { awaitRemoval } from './ended.ts';
import { afterStop, isDown } from './stop.ts';

/** How long a machine may be paused before its instance is STOPPED, in milliseconds. */
const PAUSED_GRACE_MS = 60_000;
const PAUSED_POLL_MS = 5_000;
/** How long people may rebuild the machine of an ONLINE instance before it counts as failed, in milliseconds. */
const UNFINISHED_GRACE_MS = 10 * 60_000;
const UNFINISHED_POLL_MS = 10_000;
const UNFINISHED =
  'its machine reads as unfinished, as if somebody is making it anew: after 10 minutes its instance ends in ERROR';
const RUNS = 'the machine of a STOPPED instance runs, and only its tenant may start it';

/** Reads the machine after a listing differed from the row, and applies what is certain. */
export async function stepObserve(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const found = await confirmMachine(context, record);
  const settle: Decide<InstanceRecord> = async (tx, current, lease) => {
    if (found.answer === 'unknown') return retry(context, lease, found.reason);
    return found.answer === 'gone'
      ? onMachineGone(context, lease, tx, current, found.observedAt)
      : applyMachine(context, lease, tx, current, found.value);
  };
  await settleInstance(context, lease, settle, { visibility: afterObservation(found) });
}

async function applyMachine(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  machine: ObservedMachine,
): Promise<Next> {
  const now = context.clock.now();
  if (record.status === 'STOPPED') return applyToStopped(context, lease, tx, record, machine);
  if (record.status !== 'ONLINE') return finish;
  switch (machine.power) {
    case 'stopped':
      await transition(tx, record, 'STOPPED', now);
      if (record.spec.onStop === 'release') await tx.claims.release(record.id);
      return finish;
    case 'paused':
      return applyPause(context, lease, tx, record);
    case 'building':
      return applyUnfinished(context, lease, tx, record, machine);
    case 'failed':
      return onMachineFailed(context, lease, tx, record, machine);
    case 'destroying':
      if (record.spec.instanceType !== 'SPOT') return awaitRemoval(context, lease, 'observe');
      return recordLoss(context, lease, tx, record, async () => {
        await transition(tx, record, 'DESTROYING', now);
        return { step: 'release' };
      });
    case 'running':
      if (machine.endpoint !== undefined) await amend(tx, record, now, { endpoint: machine.endpoint });
      return finish;
    default:
      return finish;
  }
}

/**
 * Makes the instance STOPPED after a grace period. The deadline of the work holds its end, so a restart of this process
 * does not restart it. The claim is always kept: a paused machine still has its memory and its GPUs.
 */
async function applyPause(
  { clock }: Recording,
  { attempt, deadlineAt }: Lease,
  tx: Transaction,
  record: InstanceRecord,
): Promise<Next> {
  const now = clock.now();
  const graceEndsAt = now + PAUSED_GRACE_MS;
  // A deadline beyond the grace period was written by a clock that was ahead.
  if (deadlineAt === null || deadlineAt > graceEndsAt)
    return { step: 'observe', deadlineAt: graceEndsAt, afterMs: PAUSED_POLL_MS };
  if (now >= deadlineAt) await transition(tx, record, 'STOPPED', now);
  const afterMs = Math.max(0, Math.min(deadlineAt - now, PAUSED_POLL_MS));
  // Waiting is not a failure: it does not count towards the alarm of a failing step.
  return { step: 'again', afterMs, attempt: attempt - 1 };
}

/**
 * Fails the instance after a grace period, with an alarm in the meantime: the disk that its tenant wrote to is gone, or is
 * being replaced. The deadline of the work holds its end.
 */
async function applyUnfinished(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  machine: ObservedMachine,
): Promise<Next> {
  const now = context.clock.now();
  const graceEndsAt = now + UNFINISHED_GRACE_MS;
  if (lease.deadlineAt === null || lease.deadlineAt > graceEndsAt)
    return { step: 'observe', deadlineAt: graceEndsAt };
  if (now < lease.deadlineAt)
    return { step: 'again', afterMs: UNFINISHED_POLL_MS, problem: UNFINISHED, isAlarm: true };
  const detail = 'it reads as unfinished, and is no longer the machine that its tenant had';
  return onMachineFailed(context, lease, tx, record, { ...machine, detail });
}

/**
 * Polls a paused machine of a STOPPED instance. Once it is off, its claim is released. If it runs again, or starts, it is
 * stopped, since only its tenant may start it.
 */
async function applyToStopped(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  { power }: ObservedMachine,
): Promise<Next> {
  if (power === 'running' || power === 'starting') return { step: 'stop', because: RUNS };
  if (power === 'destroying') return awaitRemoval(context, lease, 'observe');
  if (power === 'paused')
    return { step: 'again', afterMs: context.options.lastRetryMs, attempt: lease.attempt - 1 };
  if (isDown({ power }) && record.spec.onStop === 'release' && !record.attachCycle)
    await tx.claims.release(record.id);
  return afterStop(context, tx, record);
}
