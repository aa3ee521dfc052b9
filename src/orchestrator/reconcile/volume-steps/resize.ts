import type { ObservedVolume, Step, VolumeDriver } from '../../ports/platform-driver.ts';
import type { Transaction } from '../../ports/store.ts';
import type { VolumeRecord } from '../../volumes/volume-record.ts';
import { callStep, look } from '../call-platform.ts';
import type { ReconcileContext } from '../context.ts';
import { fromCookie, type Resize, toCookie } from '../resize-cookie.ts';
import { describeFailure, isFinal, isPastDeadline, retryFailed } from '../retry.ts';
import { type Next, settleVolume } from '../settle.ts';
import type { Lease } from '../work.ts';

/**
 * The volume reads its new size and price once the platform has carried it out. One that is refused, or does not get
 * there in time, keeps what it has. Then what was asked of its attachments meanwhile is done.
 */
export async function stepResize(
  context: ReconcileContext,
  volumes: VolumeDriver,
  lease: Lease,
  record: VolumeRecord,
): Promise<void> {
  const resize = fromCookie(lease.cookie);
  if (resize === undefined) return settleVolume(context, lease, async () => ({ step: 'attach' }));
  const step = await callStep(context, lease, () =>
    volumes.resize(record.ownerRef, resize.sizeGb, resize.driver),
  );
  const reason = whyGivenUp(step, isPastDeadline(lease, context.clock.now()));
  // What was sent may have been carried out all the same.
  const found = reason === undefined ? undefined : await look(context, () => volumes.get(record.ownerRef));
  const isLarge = found?.answer === 'observed' && (found.value.sizeGb ?? 0) >= resize.sizeGb;
  await settleVolume(context, lease, async (tx, current): Promise<Next> => {
    if (step.outcome === 'done' || isLarge) return resized(tx, current, resize);
    if (reason !== undefined) return giveUp(context, current, reason);
    if (step.outcome === 'pending')
      return {
        ...{ step: 'again', afterMs: step.pollAfterMs },
        cookie: toCookie({ ...resize, driver: step.cookie }),
      };
    const next = retryFailed(context, lease, step);
    return next.step === 'again' ? { attempt: lease.attempt, ...next, cookie: toCookie(resize) } : next;
  });
}

/** Undefined: it goes on. */
function whyGivenUp(step: Step<ObservedVolume>, isLate: boolean): string | undefined {
  if (step.outcome === 'failed')
    return isLate || isFinal(step) || step.code === 'gone' ? describeFailure(step) : undefined;
  return step.outcome === 'pending' && isLate ? 'the platform did not carry it out in time' : undefined;
}

async function resized(
  tx: Transaction,
  record: VolumeRecord,
  { sizeGb, priceMicroUsdPerHour }: Resize,
): Promise<Next> {
  await tx.volumes.update({ ...record, sizeGb, priceMicroUsdPerHour });
  return { step: 'attach' };
}

function giveUp({ log }: ReconcileContext, { id, sizeGb }: VolumeRecord, reason: string): Next {
  log.warn({ volume: id, sizeGb, reason }, 'a resize is given up; the volume keeps its size');
  return { step: 'attach' };
}
