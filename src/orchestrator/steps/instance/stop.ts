import { transition } from '../../instances/transition.ts';
import type { ObservedMachine, Power, Step } from '../../model/platform-driver.ts';
import { type InstanceRecord, instanceLogNames } from '../../model/records.ts';
import { lockVolumesOf, makeAttachmentsDue, putInstanceWork } from '../../model/rows.ts';
import type { Transaction } from '../../model/store.ts';
import type { Lease } from '../../model/work.ts';
import { callStep } from '../../platform/call-platform.ts';
import { confirmMachine } from '../../platform/confirm-gone.ts';
import type { Calling, Recording } from '../../platform/context.ts';
import { afterObservation, type Observation } from '../../platform/visibility.ts';
import {
  describeFailure,
  type Failed,
  failInstance,
  isFinal,
  isRepeated,
  onMachineFailed,
  onMachineGone,
  retry,
  retryFailed,
} from '../fail.ts';
import { type Decide, finish, type Next, settleInstance, whilePending } from '../settle.ts';
import { awaitRemoval } from './ended.ts';

const STOPPING_POLL_MS = 500;
/** What a stop would not change. */
const ENDING: ReadonlySet<Power> = new Set(['stopping', 'destroying']);

/** The result of a stop: the observed machine, and the driver's answer if it was called. */
interface Attempted {
  step?: Step<ObservedMachine>;
  found?: Observation<ObservedMachine>;
}

/**
 * STOPPING → STOPPED with the disk preserved. The claim is released if the offer says so. On a STOPPED instance it
 * undoes a failed start.
 */
export async function stepStop(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const { step, found } = await findOrStop(context, lease, record);
  const settle: Decide<InstanceRecord> = async (tx, current, lease) => {
    if (step?.outcome === 'done') return stopped(context, tx, current);
    if (step?.outcome === 'pending') return whilePending(step);
    if (found?.answer === 'gone') return onMachineGone(context, lease, tx, current, found.observedAt);
    if (found?.answer === 'observed' && found.value.power === 'destroying')
      return awaitRemoval(context, lease, 'stop');
    if (found?.answer === 'observed' && isDown(found.value))
      return current.status === 'STOPPING' && found.value.power === 'failed'
        ? onMachineFailed(context, lease, tx, current, found.value)
        : stopped(context, tx, current);
    if (step !== undefined) return notStopped(context, lease, tx, current, step);
    return found?.answer === 'unknown'
      ? retry(context, lease, found.reason)
      : { step: 'again', afterMs: STOPPING_POLL_MS, problem: 'the machine is stopping' };
  };
  await settleInstance(context, lease, settle, { visibility: found && afterObservation(found) });
}

/**
 * Sends the stop, and reads the machine if it failed. Reads the machine first if an earlier call's outcome is unknown, or a
 * removal is awaited: only then has a stop a deadline.
 */
async function findOrStop(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
): Promise<Attempted> {
  const { driver } = context;
  if (isRepeated(lease) || lease.deadlineAt !== null) {
    const found = await confirmMachine(context, record);
    if (found.answer !== 'observed' || isDown(found.value) || ENDING.has(found.value.power)) return { found };
  }
  const step = await callStep(context, lease, (call) => driver.stop(record.ownerRef, lease.cookie, call));
  return step.outcome === 'failed' ? { step, found: await confirmMachine(context, record) } : { step };
}

/** Whether the machine is neither running nor booting. */
export function isDown({ power }: Pick<ObservedMachine, 'power'>): boolean {
  return power === 'stopped' || power === 'failed';
}

async function notStopped(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  failed: Failed,
): Promise<Next> {
  if (!isFinal(failed) || record.status !== 'STOPPING') return retryFailed(context, lease, failed);
  const reason = describeFailure(failed);
  return failInstance(context, tx, record, { as: 'failure', cause: 'not_stopped', reason });
}

async function stopped(context: Recording, tx: Transaction, record: InstanceRecord): Promise<Next> {
  const now = context.clock.now();
  const current = record.status === 'STOPPING' ? await transition(tx, record, 'STOPPED', now) : record;
  await makeAttachmentsDue(tx, current.id, now);
  const next = await afterStop(context, tx, current);
  if (current.spec.onStop === 'release' && !current.attachCycle) await tx.claims.release(current.id);
  return next;
}

/** Whether an ONLINE instance can be stopped for its volumes and started again. */
export function canCycle({ driver }: Recording & Calling, { spec }: InstanceRecord): boolean {
  return driver.manifest.stop && driver.manifest.resume && spec.resumable;
}

/**
 * O: Volume status, rules: "If a stop-attach-start cycle is needed to attach, the orchestrator performs it
 * internally and reports the intermediate instance states accurately."
 */
export async function beginAttachCycle(
  { clock, log }: Recording,
  tx: Transaction,
  instance: InstanceRecord,
): Promise<void> {
  const now = clock.now();
  await transition(tx, instance, 'STOPPING', now, { attachCycle: true }, { cause: 'attach' });
  await putInstanceWork(tx, instance.id, 'stop', now);
  log.info(
    instanceLogNames(instance),
    'an instance is stopped to attach or detach a volume, and started again',
  );
}

/**
 * Starts an instance again that was stopped for its volumes, once none of them needs it stopped. The caller has locked
 * the instance and all its volumes.
 */
export async function endAttachCycle(
  { clock }: Recording,
  tx: Transaction,
  instanceId: string,
): Promise<void> {
  const instance = await tx.instances.byId(instanceId);
  // An instance with open work checks this itself in `afterStop`.
  if (instance === null || (await tx.work.of(instanceId)) !== null || !(await isOver(tx, instance))) return;
  const now = clock.now();
  await putInstanceWork(tx, instanceId, 'start', now, now + instance.spec.onlineWithinMs);
}

/**
 * The next step for a machine that was observed stopped: the end of the cycle, if its volumes no longer need the stop.
 */
export async function afterStop(
  { clock }: Recording,
  tx: Transaction,
  instance: InstanceRecord,
): Promise<Next> {
  if (!(await isOver(tx, instance))) return finish;
  return { step: 'start', deadlineAt: clock.now() + instance.spec.onlineWithinMs };
}

/** Whether the cycle can end. It does not wait for a volume that is still being made, since that may take any time. */
async function isOver(tx: Transaction, { id, status, attachCycle }: InstanceRecord): Promise<boolean> {
  if (!attachCycle || status !== 'STOPPED') return false;
  const volumes = await lockVolumesOf(tx, [id]);
  return (await tx.volumes.attachmentsOfInstance(id)).every(
    ({ state, volumeId }) => state === 'attached' || volumes.get(volumeId)?.status === 'CREATING',
  );
}
