import type { Attempt } from '../model/attempt.ts';
import { type DestroyReason, recordedOrder } from '../model/destroy-order.ts';
import type { OwnerRef } from '../model/platform-driver.ts';
import type { Transaction } from '../model/store.ts';
import type { ReconcileContext } from './context.ts';

type Resource = Pick<Attempt, 'resourceKind' | 'platform' | 'host'> & {
  id: string;
  ownerRef: OwnerRef;
  createdAt: number;
};

/**
 * Another attempt takes the place of a resource's newest one: what that made is removed by work of its own, under the order
 * that is recorded here. The caller writes the new `ownerRef`.
 */
export async function supersede(
  tx: Transaction,
  resource: Resource,
  by: string,
  now: number,
  reason: Extract<DestroyReason, 'failed_create' | 'moved'> = 'failed_create',
): Promise<void> {
  const { id: resourceId, ownerRef: ref, resourceKind, platform, host, createdAt } = resource;
  const destroyOrder = recordedOrder({ reason, by, at: now });
  await tx.attempts.put({
    resourceId,
    resourceKind,
    platform,
    ref,
    host,
    openedAt: createdAt,
    closedAt: null,
    destroyOrder,
  });
  await putRemoval(tx, { ref, resourceKind }, now);
}

/** An earlier attempt shows something on the platform, maybe after it was closed: it is removed again. */
export async function removeAttempt(
  { store, clock, alarms, log }: Pick<ReconcileContext, 'store' | 'clock' | 'alarms' | 'log'>,
  resource: Resource,
  ref: OwnerRef,
): Promise<void> {
  await store.transact(async (tx) => {
    const known = await tx.attempts.byRef(ref);
    if ((await tx.work.of(ref)) !== null) return;
    const now = clock.now();
    if (known === null) await supersede(tx, { ...resource, ownerRef: ref, host: null }, alarms.server, now);
    else {
      await tx.attempts.put({ ...known, closedAt: null });
      await putRemoval(tx, known, now);
    }
    log.warn({ ref, resource: resource.id }, 'the platform shows an earlier attempt: it is removed');
  });
}

async function putRemoval(
  tx: Transaction,
  { ref, resourceKind }: Pick<Attempt, 'ref' | 'resourceKind'>,
  now: number,
): Promise<void> {
  await tx.work.put({
    resourceId: ref,
    resourceKind,
    kind: 'destroy',
    notBefore: now,
    deadlineAt: null,
  });
}
