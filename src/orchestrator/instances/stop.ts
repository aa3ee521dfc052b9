import { ApiError } from '../../contract/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Manifests } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import { getInstance, putInstanceWork } from '../model/rows.ts';
import type { Store } from '../model/store.ts';
import { transition } from './transition.ts';

interface Deps {
  store: Store;
  clock: Clock;
  manifests: Manifests;
}

/**
 * O: POST /instances/{instanceId}/stop: ONLINE → STOPPING, then STOPPED with the disk preserved.
 *
 * @throws {ApiError} `not_found`, `invalid_state` or `operation_in_progress`
 */
export async function stopInstance(
  { store, clock, manifests }: Deps,
  accountId: string,
  id: string,
): Promise<InstanceRecord> {
  return store.transact(async (tx) => {
    const record = await getInstance(tx.instances, accountId, id);
    if (record.attachCycle)
      throw new ApiError(
        'operation_in_progress',
        'A volume is being attached; the instance is stopped and started for it.',
      );
    if (record.status !== 'ONLINE')
      throw new ApiError(
        'invalid_state',
        `Only an ONLINE instance can be stopped; this one is ${record.status}.`,
        { details: { status: record.status } },
      );
    if ((await tx.work.of(id))?.kind === 'restart')
      throw new ApiError('operation_in_progress', 'The instance is being restarted; stop it in a moment.');
    if (!manifests.of(record).stop)
      throw new ApiError(
        'invalid_state',
        'This platform cannot stop an instance and keep its disk; it can only be deleted.',
      );
    const now = clock.now();
    const stopping = await transition(tx, record, 'STOPPING', now);
    await putInstanceWork(tx, id, 'stop', now);
    return stopping;
  });
}
