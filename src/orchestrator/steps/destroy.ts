import type { Attempt } from '../model/attempt.ts';
import { type DestroyOrder, disksKeptUntil, toDriver } from '../model/destroy-order.ts';
import type { Call, Step } from '../model/platform-driver.ts';
import type { PlatformResource } from '../model/platform-resource.ts';
import type { InstanceRecord, VolumeRecord } from '../model/records.ts';
import { rowOf } from '../model/rows.ts';
import type { Transaction } from '../model/store.ts';
import type { Lease } from '../model/work.ts';
import { callStep, observe } from '../platform/call-platform.ts';
import { confirmMachine, confirmVolume } from '../platform/confirm-gone.ts';
import type { Calling, Recording } from '../platform/context.ts';
import { areOthersClosed } from '../platform/superseded-attempts.ts';
import {
  afterObservation,
  mayAppearForMs,
  type Observation,
  type VisibilityUpdate,
} from '../platform/visibility.ts';
import { volumesOf } from './context.ts';
import { LONGEST_REST_MS, retry, retryFailed } from './fail.ts';
import { endInstance, readConsole } from './instance/ended.ts';
import { endAttachCycle, isDown } from './instance/stop.ts';
import {
  type Decide,
  finish,
  type Next,
  settleAttempt,
  settleInstance,
  settleVolume,
  whilePending,
} from './settle.ts';

/** The driver's answer to a destroy, and the result of a read after it. */
export interface Removal {
  step: Step<null>;
  /**
   * A read after the driver reported the resource gone, or one that did not observe it after a `transient` failure. A
   * `gone` here is proved.
   */
  found: Observation<unknown> | undefined;
  /** When the call was answered, in milliseconds since the epoch. */
  answeredAt: number;
}

interface Removable {
  destroy(cookie: string | null, call: Call): Promise<Step<null>>;
  /** Reads the resource. Its `gone` is proved. */
  find(): Promise<Observation<unknown>>;
  /** Whether its host on the platform is known. */
  isOnHost?: boolean;
  /** Records that the removal is sent. The returned function undoes that. */
  sent?: () => () => void;
}

const DISKS_REMOVED = 'retention.lost_disks_hours are over: its disks are removed';

/**
 * Sends the destroy, and confirms a `gone` of the driver. A `transient` failure may come from another, silent host
 * although an earlier call has removed the resource, so the resource is read then, too.
 */
async function remove(context: Recording & Calling, lease: Lease, removable: Removable): Promise<Removal> {
  const takeBack = removable.sent?.();
  const step = await callStep(context, lease, (call) => removable.destroy(lease.cookie, call));
  if (step.outcome === 'failed' && step.sideEffect === 'none') takeBack?.();
  const isClaimedGone = step.outcome === 'done' || (step.outcome === 'failed' && step.code === 'gone');
  const answeredAt = context.clock.now();
  if (removable.isOnHost && step.outcome === 'failed' && step.code === 'transient') {
    const found = await removable.find();
    return { step, found: found.answer === 'observed' ? undefined : found, answeredAt };
  }
  return { step, found: isClaimedGone ? await removable.find() : undefined, answeredAt };
}

/** Removes a machine. If hosts are silent, it is listed before: see `listBeforeRemoval`. */
async function removeMachine(
  context: Recording & Calling,
  lease: Lease,
  { ownerRef, host }: Pick<InstanceRecord, 'ownerRef' | 'host'>,
  order: DestroyOrder,
): Promise<Removal> {
  const { driver, machines } = context;
  if (host !== null && lease.cookie === null) await machines.listBeforeRemoval(ownerRef);
  return remove(context, lease, {
    destroy: (cookie, call) => driver.destroy(ownerRef, cookie, order, call),
    find: () => confirmMachine(context, { ownerRef, host }, { isBeingRemoved: true }),
    isOnHost: host !== null,
    sent: () => machines.partialListings.removalSent(ownerRef),
  });
}

/** The visibility of the resource after the removal. A platform that is removing the resource has shown it. */
function visibilityAfter({ step, found, answeredAt }: Removal): VisibilityUpdate {
  if (step.outcome === 'pending') return () => null;
  return afterObservation(found ?? { answer: 'unknown', observedAt: answeredAt });
}

/**
 * The next step of the removal. Undefined if the removal is proved. A create that is in flight, or was answered
 * recently, may still appear after a `gone`.
 */
function unproved(
  context: Recording & Calling,
  lease: Lease,
  { createOpenUntil }: Pick<PlatformResource, 'createOpenUntil'>,
  { step, found }: Removal,
): Next | undefined {
  if (step.outcome === 'pending') return whilePending(step);
  if (found === undefined && step.outcome === 'failed') return retryFailed(context, lease, step);
  if (found?.answer === 'unknown') return retry(context, lease, `it is not proved gone: ${found.reason}`);
  if (found?.answer !== 'gone')
    return retry(context, lease, 'the platform reported it gone, but still has it');
  const waitMs = mayAppearForMs(context, createOpenUntil, found.observedAt);
  return waitMs > 0
    ? { step: 'again', afterMs: waitMs, problem: 'the platform may not show it yet' }
    : undefined;
}

/**
 * Removes the machine and everything that belongs to it. Retries without limit until the platform proves it gone.
 * DESTROYING then becomes DESTROYED; ERROR and OFFLINE keep their status.
 */
export async function stepDestroy(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const order = record.destroyOrder;
  if (order === null) throw new Error(`${record.id} has no destroy order`);
  const isFirst = lease.attempt === 1 && lease.cookie === null;
  if (record.status === 'ERROR' && isFirst) await readConsole(context, record);
  const { clock } = context;
  const keepDisksUntil = disksKeptUntil(order, context);
  if (clock.now() < keepDisksUntil) return switchOff(context, lease, record, keepDisksUntil);
  const removal = await removeMachine(context, lease, record, toDriver(order));
  const settle: Decide<InstanceRecord> = async (tx, current, lease) =>
    unproved(context, lease, current, removal) ??
    (await othersLeft(context, lease, tx, current)) ??
    endInstance(context, tx, current, keepDisksUntil > 0 ? DISKS_REMOVED : undefined);
  await settleInstance(context, lease, settle, { visibility: visibilityAfter(removal) });
}

/** The next step while another attempt is not closed. Undefined if all are closed. */
async function othersLeft(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord | VolumeRecord,
): Promise<Next | undefined> {
  if (await areOthersClosed(tx, record, context.clock.now())) return undefined;
  return retry(context, lease, 'the remains of another attempt are being removed');
}

/**
 * Switches off the machine of an instance that had ended without a request, since its tenant may still want its disks.
 * For its client the instance is DESTROYED. The disks are removed after `retention.lost_disks_hours`.
 */
async function switchOff(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
  keepDisksUntil: number,
): Promise<void> {
  const { driver, clock } = context;
  const found = await confirmMachine(context, record, { isBeingRemoved: true });
  const isUp = found.answer === 'observed' && !isDown(found.value);
  const step = isUp
    ? await callStep(context, lease, (call) => driver.stop(record.ownerRef, lease.cookie, call))
    : undefined;
  const settle: Decide<InstanceRecord> = async (tx, current, lease) => {
    if (found.answer === 'unknown') return retry(context, lease, found.reason);
    if (found.answer === 'gone') {
      const waitMs = mayAppearForMs(context, current.createOpenUntil, found.observedAt);
      if (waitMs > 0) return { step: 'again', afterMs: waitMs };
      return (await othersLeft(context, lease, tx, current)) ?? endInstance(context, tx, current);
    }
    if (step?.outcome === 'pending') return whilePending(step);
    if (step?.outcome === 'failed') return retryFailed(context, lease, step);
    const isNew = current.status === 'DESTROYING' || isUp || lease.cookie !== null;
    const because = `it is off, and its disks are kept until ${new Date(keepDisksUntil).toISOString()}`;
    if (isNew) await endInstance(context, tx, current, because);
    const afterMs = Math.min(LONGEST_REST_MS, Math.max(0, keepDisksUntil - clock.now()));
    return { step: 'again', afterMs, attempt: lease.attempt - 1, ...(isNew && { because }) };
  };
  await settleInstance(context, lease, settle, { visibility: afterObservation(found) });
}

/**
 * Removes a volume with its attachment records. DELETING lasts until the platform proves it gone; ERROR keeps its
 * status.
 */
export async function stepDestroyVolume(
  context: Recording & Calling,
  lease: Lease,
  record: VolumeRecord,
): Promise<void> {
  const order = record.destroyOrder;
  if (order === null) throw new Error(`${record.id} has no destroy order`);
  const volumes = volumesOf(context);
  const removal = await remove(context, lease, {
    destroy: (cookie, call) => volumes.destroy(record.ownerRef, cookie, order, call),
    find: () => confirmVolume(context, record.ownerRef),
  });
  const attachments = await context.store.read.volumes.attachmentsOfVolume(record.id);
  // No attachment is added while the volume is DELETING or ERROR.
  const instanceIds = attachments.map(({ instanceId }) => instanceId);
  const settle: Decide<VolumeRecord> = async (tx, current, lease) => {
    const next =
      unproved(context, lease, current, removal) ?? (await othersLeft(context, lease, tx, current));
    if (next !== undefined) return next;
    for (const { volumeId, instanceId } of await tx.volumes.attachmentsOfVolume(current.id)) {
      await tx.volumes.removeAttachment(volumeId, instanceId);
      await endAttachCycle(context, tx, instanceId);
    }
    await tx.storageClaims.release(current.id);
    if (current.status === 'DELETING' && current.deletedAt === null)
      await tx.volumes.update({ ...current, deletedAt: context.clock.now() });
    return finish;
  };
  await settleVolume(context, lease, settle, { instanceIds, visibility: visibilityAfter(removal) });
}

const COPY_NOT_SHOWN = 'the platform does not show the copy that is now the volume: its original stays';

/**
 * Removes what an attempt left, but never the newest attempt of a resource. The original of a moved volume is removed
 * only while the platform shows the copy that replaced it.
 */
export async function stepDestroyAttempt(
  context: Recording & Calling,
  lease: Lease,
  attempt: Attempt,
): Promise<void> {
  const { store } = context;
  const { ref, host, resourceId, resourceKind, destroyOrder } = attempt;
  const volumes = resourceKind === 'volume' ? volumesOf(context) : undefined;
  const resource = await rowOf(store.read, resourceKind, resourceId);
  if (resource?.ownerRef === ref)
    return settleAttempt(context, lease, async (tx) => {
      await tx.attempts.remove(ref);
      return finish;
    });
  const volume = resource !== null && 'deletedAt' in resource ? resource : null;
  const isWanted = volume?.deletedAt === null && volume.status !== 'DELETING';
  if (volumes !== undefined && destroyOrder.reason === 'moved' && isWanted) {
    const copy = await observe(context, () => volumes.get(volume.ownerRef));
    if (copy.answer !== 'observed')
      return settleAttempt(context, lease, async () => retry(context, lease, COPY_NOT_SHOWN));
  }
  const removal =
    volumes === undefined
      ? await removeMachine(context, lease, { ownerRef: ref, host }, destroyOrder)
      : await remove(context, lease, {
          destroy: (cookie, call) => volumes.destroy(ref, cookie, destroyOrder, call),
          find: () => confirmVolume(context, ref),
        });
  await settleAttempt(context, lease, async (tx, current, lease): Promise<Next> => {
    const next = unproved(context, lease, { createOpenUntil: destroyOrder.at }, removal);
    if (next !== undefined) return next;
    if (volumes === undefined) context.machines.partialListings.removed(ref);
    await tx.attempts.put({ ...current, closedAt: context.clock.now() });
    return finish;
  });
}
