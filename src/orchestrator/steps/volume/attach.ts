import type { ObservedVolume, Step } from '../../model/platform-driver.ts';
import {
  type Attachment,
  type InstanceRecord,
  type VolumeRecord,
  volumeLogNames,
} from '../../model/records.ts';
import type { Transaction } from '../../model/store.ts';
import { type Lease, volumeMoveOf } from '../../model/work.ts';
import { callStep } from '../../platform/call-platform.ts';
import { confirmMachine, confirmVolume } from '../../platform/confirm-gone.ts';
import type { Calling, Recording } from '../../platform/context.ts';
import { afterObservation, mayAppearForMs, type Observation } from '../../platform/visibility.ts';
import { isAttachable } from '../../volumes/attach.ts';
import { updateAttachmentStatus } from '../../volumes/transition.ts';
import { volumesOf } from '../context.ts';
import { describeFailure, type Failed, isFinal, retry, retryFailed } from '../fail.ts';
import { beginAttachCycle, canCycle, endAttachCycle } from '../instance/stop.ts';
import { type Decide, finish, type Next, settleVolume, whilePending } from '../settle.ts';
import { abandonMove, beginMove, moveVolume } from './move.ts';

const WAIT_FOR_INSTANCE_MS = 2_000;
const NOT_SHOWN = 'the platform may not show the volume yet';

/** Attaches and detaches a volume as wanted, one attachment at a time. */
export async function stepAttach(
  context: Recording & Calling,
  lease: Lease,
  record: VolumeRecord,
): Promise<void> {
  const volumes = volumesOf(context);
  const attachments = await context.store.read.volumes.attachmentsOfVolume(record.id);
  const open = await pickOpen(context, lease, attachments);
  if (open === undefined) return settleVolume(context, lease, async () => finish);
  const instance = await context.store.read.instances.byId(open.instanceId);
  if (instance === null) throw new Error(`attachment to an instance without a row: ${open.instanceId}`);
  const withdraw = async (tx: Transaction, volume: VolumeRecord): Promise<Next> => {
    await write(tx, volume, open, 'detaching');
    await endAttachCycle(context, tx, instance.id);
    return { step: 'attach' };
  };
  const move = cookieOf(lease, open) === null ? undefined : volumeMoveOf(lease.cookie);
  if (move !== undefined && (open.state === 'detaching' || !isAttachable(instance)))
    return settleVolume(context, lease, async (tx, current): Promise<Next> => {
      await abandonMove(context, tx, current, move);
      return { step: 'attach' };
    });
  if (open.state === 'detaching') return detach(context, lease, record, open, instance);
  if (!isAttachable(instance))
    return settleVolume(context, lease, async (tx, current): Promise<Next> => {
      await write(tx, current, open, 'detaching');
      return { step: 'attach' };
    });
  if (!(await isReady(context, instance))) return prepare(context, lease, open, instance);
  if (move !== undefined && volumes.copy !== undefined)
    return moveVolume(context, volumes.copy.bind(volumes), lease, record, { open, move, giveUp: withdraw });
  const step = await callStep(context, lease, (call) =>
    volumes.attach(record.ownerRef, instance.ownerRef, cookieOf(lease, open), call),
  );
  const { host } = instance;
  const isElsewhere = step.outcome === 'failed' && step.code === 'elsewhere';
  // A volume that another machine has is not copied: that machine would continue to write to the original.
  if (isElsewhere && volumes.copy !== undefined && host !== null && attachments.length === 1)
    return settleVolume(context, lease, (tx, current) => beginMove(context, tx, current, { open, host }), {
      instanceIds: [instance.id],
    });
  const cannotSucceed =
    step.outcome === 'failed' &&
    (isFinal(step) ||
      step.code === 'elsewhere' ||
      (await hasFailed(context, instance, step)) ||
      (await isGone(context, record, step)));
  const settle: Decide<VolumeRecord> = async (tx, current, lease) => {
    if (step.outcome === 'pending') return whilePending(step, `${open.instanceId} ${step.cookie}`);
    if (step.outcome === 'failed' && !cannotSucceed && !isOverdue(context, instance))
      return retryFailed(context, lease, step);
    if (step.outcome === 'failed')
      context.log.warn(
        { ...volumeLogNames(current), instance: instance.id, reason: describeFailure(step) },
        'the platform refused an attachment',
      );
    await write(tx, current, open, step.outcome === 'done' ? 'attached' : 'detaching');
    await endAttachCycle(context, tx, instance.id);
    return { step: 'attach' };
  };
  await settleVolume(context, lease, settle, { instanceIds: [instance.id] });
}

/** Whether the refusal is due to a failed machine. For a stopped machine, the failure shows only here. */
async function hasFailed(
  context: Recording & Calling,
  record: InstanceRecord,
  { code }: Failed,
): Promise<boolean> {
  if (code !== 'conflict') return false;
  const found = await confirmMachine(context, record);
  return found.answer === 'observed' && found.value.power === 'failed';
}

/**
 * Whether the refusal is due to a missing volume. A row has none if the database has lost its deletion, or a person
 * removed it.
 */
async function isGone(
  context: Recording & Calling,
  { ownerRef, createOpenUntil }: VolumeRecord,
  { code }: Failed,
): Promise<boolean> {
  if (code !== 'gone') return false;
  const found = await confirmVolume(context, ownerRef);
  return found.answer === 'gone' && mayAppearForMs(context, createOpenUntil, found.observedAt) === 0;
}

/**
 * Picks the attachment with a call in progress, else a removal, else one whose instance is ready. So no attachment
 * waits for another one's instance.
 */
async function pickOpen(
  context: Recording & Calling,
  lease: Lease,
  attachments: readonly Attachment[],
): Promise<Attachment | undefined> {
  const open = attachments.filter(({ state }) => state !== 'attached');
  const next =
    open.find((attachment) => cookieOf(lease, attachment) !== null) ??
    open.find(({ state }) => state === 'detaching');
  if (next !== undefined) return next;
  for (const attachment of open) {
    const instance = await context.store.read.instances.byId(attachment.instanceId);
    if (instance !== null && (await isReady(context, instance))) return attachment;
  }
  return open[0];
}

/** The driver's cookie. Before it, the stored cookie has the id of the attachment's instance. */
function cookieOf({ cookie }: Lease, { instanceId }: Attachment): string | null {
  return cookie?.startsWith(`${instanceId} `) ? cookie.slice(instanceId.length + 1) : null;
}

/**
 * Detaches the volume. The attachment counts until a read proves that its record is gone, even if the driver reports it
 * gone (O: Volume status, rules).
 */
async function detach(
  context: Recording & Calling,
  lease: Lease,
  record: VolumeRecord,
  open: Attachment,
  instance: InstanceRecord,
): Promise<void> {
  const step: Step<null> = await callStep(context, lease, (call) =>
    volumesOf(context).detach(record.ownerRef, instance.ownerRef, cookieOf(lease, open), call),
  );
  if (
    step.outcome === 'failed' &&
    (step.code === 'conflict' || step.code === 'unsupported') &&
    isAttachable(instance) &&
    !(await isReady(context, instance))
  )
    return prepare(context, lease, open, instance);
  const isClaimedGone = step.outcome === 'done' || (step.outcome === 'failed' && step.code === 'gone');
  const found = isClaimedGone ? await confirmVolume(context, record.ownerRef) : undefined;
  const settle: Decide<VolumeRecord> = async (tx, current, lease) => {
    if (step.outcome === 'pending') return whilePending(step, `${open.instanceId} ${step.cookie}`);
    if (found === undefined && step.outcome === 'failed') return retryFailed(context, lease, step);
    const waitMs =
      found?.answer === 'gone' ? mayAppearForMs(context, current.createOpenUntil, found.observedAt) : 0;
    if (waitMs > 0) return { step: 'again', afterMs: waitMs, problem: NOT_SHOWN };
    const uncertainty = whyUncertain(found, instance);
    if (uncertainty !== undefined) return retry(context, lease, uncertainty);
    await write(tx, current, open, 'gone');
    await endAttachCycle(context, tx, instance.id);
    return { step: 'attach' };
  };
  const visibility = found && afterObservation(found);
  await settleVolume(context, lease, settle, { instanceIds: [instance.id], visibility });
}

/** Why a record that the driver reported as gone may still exist. */
function whyUncertain(
  found: Observation<ObservedVolume> | undefined,
  { ownerRef }: InstanceRecord,
): string | undefined {
  if (found?.answer === 'unknown')
    return `the platform could not be asked whether it is detached: ${found.reason}`;
  if (found?.answer === 'observed' && found.value.attachedTo.includes(ownerRef))
    return 'the platform reported it detached, but still has its record';
  return undefined;
}

async function write(
  tx: Transaction,
  volume: VolumeRecord,
  attachment: Attachment,
  to: Attachment['state'] | 'gone',
): Promise<void> {
  if (to === 'gone') await tx.volumes.removeAttachment(attachment.volumeId, attachment.instanceId);
  else await tx.volumes.putAttachment({ ...attachment, state: to });
  await updateAttachmentStatus(tx, volume);
}

/** Whether the machine exists and is in a state in which this platform attaches volumes. */
async function isReady(
  { driver, store }: Recording & Calling,
  { id, status, endpoint }: InstanceRecord,
): Promise<boolean> {
  if (driver.manifest.attachVolume === 'hot') return endpoint !== null && status !== 'STOPPING';
  return status === 'STOPPED' && (await store.read.work.of(id)) === null;
}

/** Whether an instance has been stopped for its volumes longer than its window to come ONLINE. */
function isOverdue({ clock }: Recording, { attachCycle, updatedAt, spec }: InstanceRecord): boolean {
  return attachCycle && clock.now() - updatedAt >= spec.onlineWithinMs;
}

/** Brings an instance to a state in which this platform attaches and detaches, or waits for it. */
async function prepare(
  context: Recording & Calling,
  lease: Lease,
  open: Attachment,
  { id }: InstanceRecord,
): Promise<void> {
  const settle: Decide<VolumeRecord> = async (tx, volume) => {
    const instance = await tx.instances.byId(id);
    const mustStop = context.driver.manifest.attachVolume === 'cold' && instance?.status === 'ONLINE';
    if (mustStop && canCycle(context, instance)) {
      if ((await tx.work.of(id)) === null) await beginAttachCycle(context, tx, instance);
    } else if (mustStop && open.state === 'attaching') {
      context.log.warn(
        { ...volumeLogNames(volume), instance: id },
        'a volume cannot be attached: it needs a restart',
      );
      await write(tx, volume, open, 'detaching');
      return { step: 'attach' };
    }
    // Waiting for the instance is no attempt of the platform.
    return { step: 'attach', afterMs: WAIT_FOR_INSTANCE_MS };
  };
  await settleVolume(context, lease, settle, { instanceIds: [id] });
}
