import type { Clock } from '../../ports/clock.ts';
import { type Requester, recordedOrder } from '../model/destroy-order.ts';
import type { InstanceRecord } from '../model/records.ts';
import { getInstance, putInstanceWork } from '../model/rows.ts';
import type { Store, Transaction } from '../model/store.ts';
import { amend, transition } from './transition.ts';

/**
 * O: DELETE /instances/{instanceId}, from every state, idempotent. It takes precedence over other work: a running call
 * to the platform settles first, then the instance is destroyed. After DESTROYED it is 404.
 *
 * @throws {ApiError} `not_found`
 */
export async function destroyInstance(
  { store, clock }: { store: Store; clock: Pick<Clock, 'now'> },
  accountId: string,
  id: string,
  requester: Requester = { reason: 'tenant', by: accountId },
): Promise<InstanceRecord> {
  return store.transact(async (tx) => {
    const record = await getInstance(tx.instances, accountId, id);
    if (record.status === 'DESTROYING' && record.destroyOrder !== null) return record;
    return orderDestroy(tx, record, clock.now(), requester);
  });
}

/**
 * Records the request and puts the work that removes the machine. An earlier order stays, unless it keeps the disks: an
 * operator's order replaces that one, so the disks are removed now.
 */
export async function orderDestroy(
  tx: Transaction,
  record: InstanceRecord,
  now: number,
  { reason, by }: Requester,
): Promise<InstanceRecord> {
  const { status } = record;
  const hadEnded = (status === 'ERROR' || status === 'OFFLINE') && record.destroyOrder === null;
  const keepsDisks = hadEnded && reason === 'tenant';
  const before = reason === 'operator' && record.destroyOrder?.keepsDisks ? null : record.destroyOrder;
  const destroyOrder = before ?? recordedOrder({ reason, by, at: now, ...(keepsDisks && { keepsDisks }) });
  const changes = { attachCycle: false, destroyOrder };
  const destroying =
    status === 'DESTROYING' || status === 'DESTROYED'
      ? await amend(tx, record, now, changes)
      : await transition(tx, record, 'DESTROYING', now, changes);
  await putInstanceWork(tx, record.id, 'destroy', now);
  return destroying;
}
