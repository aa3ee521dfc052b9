import { ApiError } from '../../contract/errors.ts';
import type { RestartStatus } from '../../contract/extensions.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import { canRestart } from '../catalog/catalog.ts';
import type { Manifests } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import { getInstance, putInstanceWork } from '../model/rows.ts';
import type { Reader, Store, Transaction } from '../model/store.ts';
import { restartCookie } from '../model/work-cookies.ts';

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
  manifests: Manifests;
}

/**
 * POST /x/instances/{instanceId}/restart: resets the machine. Its memory is lost; its disk, address and status stay.
 * The restart is in progress until the SSH endpoint is proved again, see {@link restartStatus}.
 *
 * @throws {ApiError} `not_found`, `invalid_state`, `operation_in_progress` or `restart_unsupported`
 */
export async function restartInstance(
  { store, clock, random, manifests }: Deps,
  accountId: string,
  id: string,
): Promise<InstanceRecord> {
  return store.transact(async (tx) => {
    const record = await getInstance(tx.instances, accountId, id);
    if (await isBusy(tx, record))
      throw new ApiError(
        'operation_in_progress',
        'The instance is being restarted or started; try again then.',
      );
    if (record.status !== 'ONLINE')
      throw new ApiError(
        'invalid_state',
        `Only an ONLINE instance can be restarted; this one is ${record.status}.`,
        { details: { status: record.status } },
      );
    if (!canRestart(manifests.of(record), record.spec))
      throw new ApiError(
        'restart_unsupported',
        'This platform cannot restart instances of this offer; the instance is unchanged.',
      );
    const now = clock.now();
    await tx.history.asked({ instanceId: id, at: now, what: 'restart' });
    const restart = {
      since: now,
      id: random.bytes(8).toString('hex'),
      phase: 'order',
      driver: null,
    } as const;
    await putInstanceWork(
      tx,
      id,
      'restart',
      now,
      now + record.spec.onlineWithinMs,
      restartCookie.encode(restart),
    );
    return record;
  });
}

/** Whether an operation is in progress that ends with the instance ONLINE. */
async function isBusy(tx: Transaction, { id, status, attachCycle }: InstanceRecord): Promise<boolean> {
  if (attachCycle) return true;
  const kind = (await tx.work.of(id))?.kind;
  if (status === 'STOPPED') return kind === 'start' || kind === 'verify';
  return status === 'ONLINE' && kind === 'restart';
}

/** GET /x/instances/{instanceId}/restart. @throws {ApiError} `not_found` */
export async function restartStatus(
  { instances, work }: Pick<Reader, 'instances' | 'work'>,
  accountId: string,
  id: string,
): Promise<RestartStatus> {
  await getInstance(instances, accountId, id);
  const open = await work.of(id);
  const restart = open?.kind === 'restart' ? restartCookie.decode(open.cookie) : undefined;
  if (restart === undefined) return { restarting: false };
  return { restarting: true, since: new Date(restart.since).toISOString() };
}
