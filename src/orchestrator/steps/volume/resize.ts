import type { ObservedVolume, Step } from '../../model/platform-driver.ts';
import { type VolumeRecord, volumeLogNames } from '../../model/records.ts';
import type { Transaction } from '../../model/store.ts';
import type { Lease } from '../../model/work.ts';
import { type Resize, resizeCookie } from '../../model/work-cookies.ts';
import { callStep } from '../../platform/call-platform.ts';
import { confirmVolume } from '../../platform/confirm-gone.ts';
import type { ReconcileContext } from '../../platform/context.ts';
import { afterObservation, mayAppearForMs } from '../../platform/visibility.ts';
import { claimActualSize } from '../../volumes/storage.ts';
import { type StepContext, volumesOf } from '../context.ts';
import { describeFailure, isFinal, isPastDeadline, pauseMs, retryFailed } from '../retry.ts';
import { type Next, settleVolume, whilePending } from '../settle.ts';

const LATE = 'the platform has not finished the resize in time, and reports that it is still in progress';
const NOT_SHOWN = 'the platform may not show the volume yet';

/**
 * Writes the new size and price once the platform has resized the volume. A resize that is refused, or not begun in
 * time, leaves both unchanged. Attachments requested meanwhile are handled next.
 */
export async function stepResize(context: StepContext, lease: Lease, record: VolumeRecord): Promise<void> {
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
  const settle = async (tx: Transaction, current: VolumeRecord): Promise<Next> => {
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
  { log }: ReconcileContext,
  tx: Transaction,
  record: VolumeRecord,
  reason: string,
): Promise<Next> {
  const { sizeGb } = record;
  await claimActualSize(tx, record);
  log.warn({ ...volumeLogNames(record), sizeGb, reason }, 'a resize was given up; the volume keeps its size');
  return { step: 'attach' };
}
