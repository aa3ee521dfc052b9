import { transition } from '../instances/transition.ts';
import type { Step, VolumeDriver } from '../model/platform-driver.ts';
import type { PlatformResource } from '../model/platform-resource.ts';
import { type InstanceRecord, instanceLogNames, type VolumeRecord } from '../model/records.ts';
import { lockVolumesOf } from '../model/rows.ts';
import type { Transaction } from '../model/store.ts';
import type { Lease } from '../model/work.ts';
import { callStep } from '../platform/call-platform.ts';
import { confirmRemoved, confirmVolume } from '../platform/confirm-gone.ts';
import type { ReconcileContext } from '../platform/context.ts';
import {
  afterObservation,
  mayAppearForMs,
  type Observation,
  type VisibilityUpdate,
} from '../platform/visibility.ts';
import { dropAttachments } from '../volumes/attachments.ts';
import { logConsole } from './console-tail.ts';
import type { StepContext } from './context.ts';
import { endAttachCycle } from './instance/attach-cycle.ts';
import { retry, retryFailed } from './retry.ts';
import { finish, type Next, settleInstance, settleVolume } from './settle.ts';

/** The driver's answer to a destroy, and what a read showed after it. */
export interface Removal {
  step: Step<null>;
  /** Only if the driver said that it is gone; a `gone` here is proved. */
  found: Observation<unknown> | undefined;
  /** When the call was answered. */
  answeredAt: number;
}

interface Removable {
  destroy(cookie: string | null): Promise<Step<null>>;
  /** Reads the resource; its `gone` is proved. */
  find(): Promise<Observation<unknown>>;
  /** Whether it is known which host of the platform has it. */
  isOnHost?: boolean;
}

/**
 * Sends the destroy; a driver's claim that the resource is gone is confirmed. Where another host than the machine's did not
 * answer, an earlier call may have removed it.
 */
async function remove(context: StepContext, lease: Lease, removable: Removable): Promise<Removal> {
  const step = await callStep(context, lease, () => removable.destroy(lease.cookie));
  const isClaimedGone = step.outcome === 'done' || (step.outcome === 'failed' && step.code === 'gone');
  const answeredAt = context.clock.now();
  if (removable.isOnHost && step.outcome === 'failed' && step.code === 'transient') {
    const found = await removable.find();
    return { step, found: found.answer === 'observed' ? undefined : found, answeredAt };
  }
  return { step, found: isClaimedGone ? await removable.find() : undefined, answeredAt };
}

/** What the removal shows about the visibility of the resource: a platform that is removing it has shown it. */
function visibilityAfter({ step, found, answeredAt }: Removal): VisibilityUpdate {
  if (step.outcome === 'pending') return () => null;
  return afterObservation(found ?? { answer: 'unknown', observedAt: answeredAt });
}

/**
 * How the removal continues; undefined: it is proved. A create that is in flight, or was answered just now, may still
 * appear after a `gone`.
 */
function unproved(
  context: StepContext,
  lease: Lease,
  { ownerRef, createOpenUntil }: PlatformResource,
  { step, found }: Removal,
): Next | undefined {
  if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
  if (found === undefined && step.outcome === 'failed') return retryFailed(context, lease, step);
  if (found?.answer === 'unknown') return retry(context, lease, `it is not proved gone: ${found.reason}`);
  if (found?.answer !== 'gone')
    return retry(context, lease, 'the platform said that it is gone, and still has it');
  if (context.creates.isInFlight(ownerRef)) return retry(context, lease, 'a create has not come back yet');
  const waitMs = mayAppearForMs(context, createOpenUntil, found.observedAt);
  return waitMs > 0
    ? { step: 'again', afterMs: waitMs, problem: 'the platform may not show it yet' }
    : undefined;
}

/**
 * Removes the machine and all that belongs to it, and goes on until the platform shows that it is gone: there
 * is no giving up. DESTROYING then becomes DESTROYED; ERROR and OFFLINE stay as they are, cleaned.
 */
export async function stepDestroy(context: StepContext, lease: Lease, record: InstanceRecord): Promise<void> {
  await logConsole(context, lease, record);
  const { driver, machines } = context;
  if (record.host !== null && lease.cookie === null) await machines.seeBesideSilence(record.ownerRef);
  const removal = await remove(context, lease, {
    destroy: (cookie) => driver.destroy(record.ownerRef, cookie),
    find: () => confirmRemoved(context, record),
    isOnHost: record.host !== null,
  });
  const settle = async (tx: Transaction, current: InstanceRecord): Promise<Next> =>
    unproved(context, lease, current, removal) ?? destroyed(context, tx, current);
  await settleInstance(context, lease, settle, { visibility: visibilityAfter(removal) });
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
  log.info({ ...instanceLogNames(record), status: record.status }, 'the machine is proved gone');
  return finish;
}

/**
 * DELETING, until the platform shows that the volume is gone. Lingering attachment records go with it. ERROR stays
 * as it is, cleaned.
 */
export async function stepDestroyVolume(
  context: StepContext,
  volumes: VolumeDriver,
  lease: Lease,
  record: VolumeRecord,
): Promise<void> {
  const removal = await remove(context, lease, {
    destroy: (cookie) => volumes.destroy(record.ownerRef, cookie),
    find: () => confirmVolume(context, volumes, record.ownerRef),
  });
  const attachments = await context.store.read.volumes.attachmentsOfVolume(record.id);
  // None is added while it is DELETING or ERROR.
  const instanceIds = attachments.map(({ instanceId }) => instanceId);
  const settle = async (tx: Transaction, current: VolumeRecord): Promise<Next> => {
    const next = unproved(context, lease, current, removal);
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
