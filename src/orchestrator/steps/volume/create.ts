import { recordedOrder } from '../../model/destroy-order.ts';
import type { ObservedVolume, Step, VolumeSpec } from '../../model/platform-driver.ts';
import { type VolumeRecord, volumeLogNames } from '../../model/records.ts';
import type { Transaction } from '../../model/store.ts';
import { type Lease, type Resize, resizeCookie } from '../../model/work.ts';
import { callStep, observe } from '../../platform/call-platform.ts';
import { confirmVolume } from '../../platform/confirm-gone.ts';
import type { Calling, Recording } from '../../platform/context.ts';
import { afterObservation, mayAppearForMs } from '../../platform/visibility.ts';
import { toNote } from '../../volumes/note.ts';
import { claimActualSize } from '../../volumes/storage.ts';
import { transitionVolume, updateAttachmentStatus } from '../../volumes/transition.ts';
import { afterCreate, atItsHost, findEarlierCreate, isRefused, waitForEarlier } from '../adopt-or-create.ts';
import { type StepContext, volumesOf } from '../context.ts';
import {
  describeFailure,
  type Failed,
  isFinal,
  isPastDeadline,
  pauseMs,
  retry,
  retryFailed,
} from '../fail.ts';
import { alone, openNextAttempt, placeVolume } from '../place.ts';
import { type Decide, finish, type Next, settleVolume, whilePending } from '../settle.ts';

/** CREATING → AVAILABLE, then the attachments requested with the create. */
export async function stepCreateVolume(
  context: StepContext,
  lease: Lease,
  record: VolumeRecord,
): Promise<void> {
  const attempted = await findOrCreate(context, lease, record);
  await settleVolume(
    context,
    lease,
    async (tx, current, lease): Promise<Next> => {
      switch (attempted.outcome) {
        case 'open':
          return attempted.next;
        case 'pending':
          return whilePending(attempted);
        case 'done':
          return made(tx, current, attempted.value);
        case 'failed':
          return notMade(context, lease, tx, current, attempted);
      }
    },
    { visibility: afterCreate(attempted, lease, context.clock.now()) },
  );
}

/** `open`: nothing was sent, and an earlier create may still appear. */
type Attempted = Step<ObservedVolume> | { outcome: 'open'; next: Next };

/** Sends the create. It is sent even if the volume exists, since a repeated create returns the progress. */
async function findOrCreate(context: StepContext, lease: Lease, record: VolumeRecord): Promise<Attempted> {
  const volumes = volumesOf(context);
  const before = await findEarlierCreate(context, lease, record, {
    get: (ref) => observe(context, () => volumes.get(ref)),
    place: volumes.place,
  });
  if (before.answer === 'unknown') return { outcome: 'open', next: retry(context, lease, before.reason) };
  if (before.answer === 'absent' && before.waitMs > 0)
    return { outcome: 'open', next: waitForEarlier(lease, before.waitMs) };
  const located = atItsHost(record, before, volumes.place);
  const spec = toVolumeSpec(context, located);
  if (volumes.place === undefined || lease.cookie !== null || located.host !== null)
    return callStep(context, lease, (call) => volumes.create(spec, lease.cookie, call));
  return alone(context, async () => {
    const placed = await placeVolume(context, record, spec);
    if ('outcome' in placed) return placed;
    const placedSpec = toVolumeSpec(context, placed);
    return callStep(context, lease, (call) => volumes.create(placedSpec, lease.cookie, call));
  });
}

export function toVolumeSpec(
  { catalog, installationId }: Pick<StepContext, 'catalog' | 'installationId'>,
  record: VolumeRecord,
): VolumeSpec {
  return {
    ref: record.ownerRef,
    datacenter: catalog.regions.get(record.region)?.datacenter ?? record.region,
    sizeGb: record.sizeGb,
    type: record.type ?? undefined,
    note: toNote(installationId, record),
    ...(record.host !== null && { host: record.host }),
  };
}

async function made(tx: Transaction, record: VolumeRecord, { host }: ObservedVolume): Promise<Next> {
  const available = await transitionVolume(tx, { ...record, host: host ?? null }, 'AVAILABLE');
  const { status } = await updateAttachmentStatus(tx, available);
  return status === 'AVAILABLE' ? finish : { step: 'attach' };
}

async function notMade(
  context: Recording & Calling,
  lease: Lease,
  tx: Transaction,
  record: VolumeRecord,
  failed: Failed,
): Promise<Next> {
  const next = await openNextAttempt(context, lease, tx, record, failed, {
    resourceKind: 'volume',
    places: context.driver.volumes?.place !== undefined,
    names: volumeLogNames(record),
    write: (changes) => tx.volumes.update({ ...record, ...changes }),
  });
  if (next !== undefined) return next;
  return isRefused(failed) ? refused(context, tx, record, failed) : retryFailed(context, lease, failed);
}

async function refused(
  { log, alarms, clock }: Recording,
  tx: Transaction,
  record: VolumeRecord,
  failed: Failed,
): Promise<Next> {
  log.warn({ ...volumeLogNames(record), reason: describeFailure(failed) }, 'the platform refused a volume');
  for (const { volumeId, instanceId } of await tx.volumes.attachmentsOfVolume(record.id))
    await tx.volumes.removeAttachment(volumeId, instanceId);
  const destroyOrder = recordedOrder({ reason: 'failed_create', by: alarms.server, at: clock.now() });
  await transitionVolume(tx, { ...record, destroyOrder }, 'ERROR');
  return { step: 'destroy' };
}

const LATE = 'the platform has not finished the resize in time, and reports that it is still in progress';
const NOT_SHOWN = 'the platform may not show the volume yet';

/**
 * Writes the new size and price once the platform has resized the volume. A resize that is refused, or not begun in
 * time, leaves both unchanged. Attachments requested meanwhile are handled next.
 */
export async function stepResize(
  context: Recording & Calling,
  lease: Lease,
  record: VolumeRecord,
): Promise<void> {
  const volumes = volumesOf(context);
  const resize = resizeCookie.decode(lease.cookie);
  if (resize === undefined)
    return settleVolume(context, lease, async (tx, current): Promise<Next> => {
      await claimActualSize(tx, current);
      return { step: 'attach' };
    });
  const answer = await callStep(context, lease, (call) =>
    volumes.resize(record.ownerRef, resize.sizeGb, resize.driver, call),
  );
  const step = checkSize(answer, resize);
  const isLate = isPastDeadline(lease, context.clock.now());
  const reason = giveUpReason(step, isLate);
  // The platform may have carried out the resize despite the failure.
  const found = reason === undefined ? undefined : await confirmVolume(context, record.ownerRef);
  const isLarge = found?.answer === 'observed' && (found.value.sizeGb ?? 0) >= resize.sizeGb;
  const settle: Decide<VolumeRecord> = async (tx, current, lease) => {
    if (step.outcome === 'done' || isLarge) return resized(tx, current, resize);
    // The outcome is unknown: the storage stays claimed, and the resize is retried.
    const again = { step: 'again', cookie: resizeCookie.encode(resize) } as const;
    if (reason !== undefined && found?.answer === 'unknown')
      return { ...again, afterMs: pauseMs(context, lease), problem: `${reason}; ${found.reason}` };
    const waitMs =
      found?.answer === 'gone' ? mayAppearForMs(context, current.createOpenUntil, found.observedAt) : 0;
    if (waitMs > 0) return { ...again, afterMs: waitMs, problem: NOT_SHOWN };
    if (reason !== undefined) return giveUp(context, tx, current, reason);
    if (step.outcome === 'pending')
      return {
        ...whilePending(step, resizeCookie.encode({ ...resize, driver: step.cookie })),
        ...(isLate && { problem: LATE }),
      };
    return { ...again, ...retryFailed(context, lease, step) };
  };
  await settleVolume(context, lease, settle, { visibility: found && afterObservation(found) });
}

/** Treats a resize as failed if it is reported as done while the volume is still smaller. */
function checkSize(step: Step<ObservedVolume>, { sizeGb }: Resize): Step<ObservedVolume> {
  if (step.outcome !== 'done' || step.value.sizeGb === undefined || step.value.sizeGb >= sizeGb) return step;
  const detail = `the platform reported ${sizeGb} GB, but shows ${step.value.sizeGb}`;
  return { outcome: 'failed', code: 'unknown_outcome', sideEffect: 'possible', detail };
}

/**
 * Why the resize is given up. Undefined if it continues. A resize in progress on the platform is never given up, and
 * its storage stays claimed.
 */
function giveUpReason(step: Step<ObservedVolume>, isLate: boolean): string | undefined {
  if (step.outcome !== 'failed') return undefined;
  return isLate || isFinal(step) || step.code === 'gone' ? describeFailure(step) : undefined;
}

async function resized(
  tx: Transaction,
  record: VolumeRecord,
  { sizeGb, priceMicroUsdPerHour }: Resize,
): Promise<Next> {
  const larger = { ...record, sizeGb, priceMicroUsdPerHour };
  await tx.volumes.update(larger);
  await claimActualSize(tx, larger);
  return { step: 'attach' };
}

async function giveUp(
  { log }: Recording,
  tx: Transaction,
  record: VolumeRecord,
  reason: string,
): Promise<Next> {
  const { sizeGb } = record;
  await claimActualSize(tx, record);
  log.warn({ ...volumeLogNames(record), sizeGb, reason }, 'a resize was given up; the volume keeps its size');
  return { step: 'attach' };
}
