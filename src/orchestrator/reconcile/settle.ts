import type { InstanceRecord } from '../instances/instance-record.ts';
import type { Transaction } from '../ports/store.ts';
import type { VolumeRecord } from '../volumes/volume-record.ts';
import type { ReconcileContext } from './context.ts';
import type { Lease, Work } from './work.ts';

/** What follows a step. */
export type Next =
  /** Nothing is left to do. */
  | { step: 'finish' }
  /** The same step goes on. */
  | { step: 'again'; afterMs: number; cookie?: string; problem?: string }
  /** Another step follows. */
  | { step: Work['kind']; deadlineAt?: number | null; afterMs?: number };

export const finish: Next = { step: 'finish' };

/**
 * Writes the outcome of a step, in one transaction that begins by asking whether the lease still holds. A
 * lost lease writes nothing; where a use case has put other work meanwhile, the outcome is left to that.
 */
export async function settleInstance(
  context: ReconcileContext,
  lease: Lease,
  decide: (tx: Transaction, record: InstanceRecord) => Promise<Next>,
): Promise<void> {
  await settle(context, lease, async (tx) => {
    const record = await tx.instances.byId(lease.resourceId);
    if (record === null) throw new Error(`work for an instance without a row: ${lease.resourceId}`);
    return decide(tx, record);
  });
}

/** {@link settleInstance}, for a volume. */
export async function settleVolume(
  context: ReconcileContext,
  lease: Lease,
  decide: (tx: Transaction, record: VolumeRecord) => Promise<Next>,
): Promise<void> {
  await settle(context, lease, async (tx) => {
    const record = await tx.volumes.byId(lease.resourceId);
    if (record === null) throw new Error(`work for a volume without a row: ${lease.resourceId}`);
    return decide(tx, record);
  });
}

async function settle(
  context: ReconcileContext,
  lease: Lease,
  decide: (tx: Transaction) => Promise<Next>,
): Promise<void> {
  const { store, clock, log, failpoint } = context;
  await store.transact(async (tx) => {
    const state = await tx.work.check(lease);
    if (state === 'lost')
      return log.warn(
        { resource: lease.resourceId, step: lease.kind },
        'a step came back after its lease was lost; nothing was written',
      );
    if (state === 'superseded') return tx.work.release(lease);
    const next = await decide(tx);
    const now = clock.now();
    if (next.step === 'finish') await tx.work.finish(lease);
    else if (next.step === 'again')
      await tx.work.release(lease, {
        cookie: next.cookie ?? null,
        notBefore: now + next.afterMs,
        lastError: next.problem ?? null,
        // A call that made progress is no failed attempt: the pause after a failure starts anew.
        ...(next.cookie !== undefined && { attempt: 1 }),
      });
    else {
      const { resourceId, resourceKind } = lease;
      await tx.work.put({
        resourceId,
        resourceKind,
        kind: next.step,
        notBefore: now + (next.afterMs ?? 0),
        deadlineAt: next.deadlineAt ?? null,
      });
      await tx.work.release(lease);
    }
  });
  failpoint(`${lease.kind}:settled`);
}
