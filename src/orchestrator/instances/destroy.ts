import type { Clock } from '../../ports/clock.ts';
import type { InstanceRecord } from '../model/records.ts';
import { getInstance, putInstanceWork } from '../model/rows.ts';
import type { Store } from '../model/store.ts';
import { transition } from './transition.ts';

/**
 * O: DELETE /instances/{instanceId}, from every state, idempotent. It wins over whatever is under way: a call
 * to the platform that is out settles first, then the instance is destroyed. After DESTROYED it is 404.
 *
 * @throws {ApiError} `not_found`
 */
export async function destroyInstance(
  { store, clock }: { store: Store; clock: Clock },
  accountId: string,
  id: string,
): Promise<InstanceRecord> {
  return store.transact(async (tx) => {
    const record = await getInstance(tx.instances, accountId, id);
    if (record.status === 'DESTROYING') return record;
    const now = clock.now();
    const destroying = await transition(tx, record, 'DESTROYING', now, { attachCycle: false });
    await putInstanceWork(tx, id, 'destroy', now);
    return destroying;
  });
}
