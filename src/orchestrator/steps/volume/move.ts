import { recordedOrder } from '../../model/destroy-order.ts';
import type { VolumeDriver } from '../../model/platform-driver.ts';
import { type Attachment, type VolumeRecord, volumeLogNames } from '../../model/records.ts';
import type { Transaction } from '../../model/store.ts';
import { type Lease, toVolumeMoveCookie, type VolumeMove } from '../../model/work.ts';
import { callStep } from '../../platform/call-platform.ts';
import type { Calling, ReconcileContext, Recording } from '../../platform/context.ts';
import { supersede } from '../../platform/superseded-attempts.ts';
import { describeFailure, isFinal, retryFailed } from '../fail.ts';
import { nextRefOf } from '../place.ts';
import { type Again, type Next, settleVolume, whilePending } from '../settle.ts';
import { toVolumeSpec } from './create.ts';

function goOn({ instanceId }: Attachment, move: VolumeMove, afterMs: number): Again {
  return { step: 'again', afterMs, cookie: toVolumeMoveCookie(instanceId, move) };
}

/**
 * Stores the copy as an attempt before anything is copied: its name, its host, and the order to remove it if the copy
 * is interrupted.
 */
export async function beginMove(
  { clock, alarms, platform }: Pick<ReconcileContext, 'clock' | 'alarms' | 'platform'>,
  tx: Transaction,
  record: VolumeRecord,
  { open, host }: { open: Attachment; host: string },
): Promise<Next> {
  const now = clock.now();
  const target = await nextRefOf(tx, record);
  await tx.attempts.put({
    ...{ resourceId: record.id, resourceKind: 'volume', platform, ref: target, host },
    ...{ openedAt: now, closedAt: null },
    destroyOrder: recordedOrder({ reason: 'failed_create', by: alarms.server, at: now }),
  });
  return goOn(open, { target, host, driver: null }, 0);
}

/**
 * Copies a volume to the host of the machine that it will be attached to. One transaction makes the verified copy the
 * volume; other work then removes the original. `giveUp` handles an attachment that cannot be made.
 */
export async function moveVolume(
  context: Recording & Calling,
  copy: NonNullable<VolumeDriver['copy']>,
  lease: Lease,
  record: VolumeRecord,
  {
    open,
    move,
    giveUp,
  }: {
    open: Attachment;
    move: VolumeMove;
    giveUp: (tx: Transaction, volume: VolumeRecord) => Promise<Next>;
  },
): Promise<void> {
  const { alarms, clock, log } = context;
  const spec = toVolumeSpec(context, { ...record, ownerRef: move.target, host: move.host });
  const step = await callStep(context, lease, (call) => copy(record.ownerRef, spec, move.driver, call));
  await settleVolume(
    context,
    lease,
    async (tx, current, lease): Promise<Next> => {
      if (step.outcome === 'pending')
        return whilePending(step, toVolumeMoveCookie(open.instanceId, { ...move, driver: step.cookie }));
      const isBeingRemoved = (await tx.work.of(move.target)) !== null;
      if (step.outcome === 'done' && !isBeingRemoved) {
        await tx.attempts.remove(move.target);
        await supersede(tx, { ...current, resourceKind: 'volume' }, alarms.server, clock.now(), 'moved');
        await tx.volumes.update({ ...current, ownerRef: move.target, host: move.host });
        log.info(
          { ...volumeLogNames(current), from: current.host, to: move.host },
          'a volume was moved: its copy is now the volume',
        );
        return { step: 'attach' };
      }
      if (step.outcome === 'done' || step.code === 'unfinished') {
        await abandonMove(context, tx, current, move);
        return { step: 'attach' };
      }
      if (isFinal(step)) {
        log.warn({ ...volumeLogNames(current), reason: describeFailure(step) }, 'a volume cannot be moved');
        await abandonMove(context, tx, current, move);
        return giveUp(tx, current);
      }
      const again = retryFailed(context, lease, step);
      return { ...again, ...goOn(open, move, again.afterMs) };
    },
    { instanceIds: [open.instanceId] },
  );
}

/** Keeps the original as the volume, and removes the incomplete copy. */
export async function abandonMove(
  { alarms, clock }: Pick<ReconcileContext, 'alarms' | 'clock'>,
  tx: Transaction,
  record: VolumeRecord,
  { target, host }: VolumeMove,
): Promise<void> {
  const copy = { ...record, ownerRef: target, host, resourceKind: 'volume' as const };
  await supersede(tx, copy, alarms.server, clock.now());
}
