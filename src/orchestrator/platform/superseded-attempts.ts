import { type Attempt, generationOf } from '../model/attempt.ts';
import { type DestroyReason, recordedOrder } from '../model/destroy-order.ts';
import type { OwnerRef } from '../model/platform-driver.ts';
import { rowOf } from '../model/rows.ts';
import type { Reader, Transaction } from '../model/store.ts';
import { type ResourceKind, volumeMoveOf } from '../model/work.ts';
import type { ReconcileContext } from './context.ts';
import { changedBefore } from './expected-machines.ts';

type Resource = Pick<Attempt, 'resourceKind' | 'platform' | 'host'> & {
  id: string;
  ownerRef: OwnerRef;
  createdAt: number;
  /** Set if nothing of the attempt is left. */
  closedAt?: number;
};

/**
 * Records the order to remove the result of an attempt, and puts the work that removes it. Another attempt replaces it,
 * or it is given up. The caller writes the new `ownerRef`.
 */
export async function supersede(
  tx: Transaction,
  resource: Resource,
  by: string,
  now: number,
  reason: Extract<DestroyReason, 'failed_create' | 'moved' | 'operator'> = 'failed_create',
): Promise<void> {
  const { id, ownerRef: ref, resourceKind, platform, host, createdAt, closedAt = null } = resource;
  await tx.attempts.put({
    resourceId: id,
    resourceKind,
    platform,
    ref,
    host,
    openedAt: createdAt,
    closedAt,
    destroyOrder: recordedOrder({ reason, by, at: now }),
  });
  if (closedAt === null) await putRemoval(tx, { ref, resourceKind }, now);
}

/**
 * The state of an attempt that the platform shows under another name than the row has.
 *
 * - `removed`: an earlier attempt, an abandoned copy, or an attempt of a resource with a destroy order. It is
 * removed, even if it was closed before.
 * - `under_way`: a call for the resource is running, or its volume is being copied to that name.
 * - `later`: a later attempt without an order. The row does not have it after a restore.
 * - `current`: the row now has that name, or there is no row.
 */
export type OtherAttempt = 'removed' | 'under_way' | 'later' | 'current';

/** Returns the state of the attempt `ref`, and orders its removal if it is `removed`. */
export async function removeOtherAttempt(
  { store, clock, alarms, log }: Pick<ReconcileContext, 'store' | 'clock' | 'alarms' | 'log'>,
  resourceKind: ResourceKind,
  { id, ref }: { id: string; ref: OwnerRef },
): Promise<OtherAttempt> {
  return store.transact(async (tx) => {
    const row = await rowOf(tx, resourceKind, id);
    if (row === null || row.ownerRef === ref) return 'current';
    const known = await tx.attempts.byRef(ref);
    const isEarlier = generationOf(ref) < generationOf(row.ownerRef);
    if (!isEarlier && (await isUnderWay(tx, { id, ref }, clock.now()))) return 'under_way';
    if (!isEarlier && known === null && row.destroyOrder === null) return 'later';
    if ((await tx.work.of(ref)) !== null) return 'removed';
    const now = clock.now();
    if (known === null)
      await supersede(tx, { ...row, resourceKind, ownerRef: ref, host: null }, alarms.server, now);
    else {
      await tx.attempts.put({ ...known, closedAt: null });
      await putRemoval(tx, known, now);
    }
    log.warn(
      { ref, resource: id },
      'the platform shows an attempt that the row does not have: it is removed',
    );
    return 'removed';
  });
}

/**
 * Whether the removal of a resource without a row is ordered. If it was proved gone before the listing that shows it
 * began, it is removed again.
 */
export async function removeWithoutRow(
  context: Pick<ReconcileContext, 'store' | 'clock' | 'options' | 'log'>,
  ref: OwnerRef,
  begunAt: number,
): Promise<boolean> {
  const { store, clock, log } = context;
  const known = await store.read.attempts.byRef(ref);
  if (known === null) return false;
  if (known.closedAt !== null && changedBefore(known.closedAt, begunAt, context))
    await store.transact(async (tx) => {
      const current = await tx.attempts.byRef(ref);
      if (current === null || current.closedAt === null || (await tx.work.of(ref)) !== null) return;
      await tx.attempts.put({ ...current, closedAt: null });
      await putRemoval(tx, current, clock.now());
      log.warn({ ref }, 'a removed resource was listed again and is removed again');
    });
  return true;
}

/** Whether all other attempts of a resource are closed. Puts the work that removes the open ones. */
export async function areOthersClosed(
  tx: Transaction,
  { id, ownerRef }: { id: string; ownerRef: OwnerRef },
  now: number,
): Promise<boolean> {
  const open = (await tx.attempts.of(id)).filter(
    ({ ref, closedAt }) => closedAt === null && ref !== ownerRef,
  );
  for (const attempt of open)
    if ((await tx.work.of(attempt.ref)) === null) await putRemoval(tx, attempt, now);
  return open.length === 0;
}

/** Whether a call for the resource is running, or its volume is being copied to `ref`. */
export async function isUnderWay(
  { work }: Pick<Transaction, 'work'>,
  { id, ref }: { id: string; ref: OwnerRef },
  now: number,
): Promise<boolean> {
  const open = await work.of(id);
  return open !== null && (open.leaseUntil > now || volumeMoveOf(open.cookie)?.target === ref);
}

/**
 * Whether an instance's create is still open, so that no tenant has used its machine. One that is PROVISIONING without it
 * waits for its SSH proof, and may have been ONLINE before a restore.
 */
export async function isCreateOpen({ work }: Pick<Reader, 'work'>, id: string): Promise<boolean> {
  return (await work.of(id))?.kind === 'create';
}

/**
 * Puts the work that removes a resource again: its removal ended, and a listing that began later shows something of it.
 * Returns false if there is no destroy order, or other work of it is open.
 */
export async function removeAgain(
  { store, clock, options }: Pick<ReconcileContext, 'store' | 'clock' | 'options'>,
  resourceKind: ResourceKind,
  id: string,
  begunAt = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  return store.transact(async (tx) => {
    const row = await rowOf(tx, resourceKind, id);
    if (row === null || row.destroyOrder === null || (await tx.work.of(id)) !== null) return false;
    const endedAt = 'deletedAt' in row ? row.deletedAt : row.updatedAt;
    if (endedAt !== null && !changedBefore(endedAt, begunAt, { clock, options })) return false;
    await putRemoval(tx, { ref: id, resourceKind }, clock.now());
    return true;
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
