import { ApiError } from '../../contract/errors.ts';
import type { RestartStatus } from '../../contract/extensions.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { activeCordons } from '../capacity/cordons.ts';
import { claimUnit, noCapacity, type Supply } from '../capacity/deployable.ts';
import { type Catalog, canRestart } from '../catalog/catalog.ts';
import type { Manifests } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import { getInstance, putInstanceWork } from '../model/rows.ts';
import type { Reader, Store, Transaction } from '../model/store.ts';
import { restartCookie } from '../model/work.ts';
import { transition } from './transition.ts';

interface StartDeps {
  store: Store;
  catalog: Catalog;
  clock: Clock;
  log: Pick<Log, 'warn'>;
  manifests: Manifests;
  supply: Supply;
}

/**
 * O: POST /instances/{instanceId}/start. There is no STARTING state: the instance stays STOPPED until its SSH endpoint
 * is live again. A second start meanwhile succeeds and changes nothing.
 *
 * @throws {ApiError} `not_found`, `invalid_state`, `resume_unsupported`, `capacity_unavailable` or
 *   `operation_in_progress`; the disk is always kept (O: Instances, rule 4)
 */
export async function startInstance(deps: StartDeps, accountId: string, id: string): Promise<InstanceRecord> {
  const { store, clock, manifests } = deps;
  return store.transact(async (tx) => {
    const record = await getInstance(tx.instances, accountId, id);
    if (record.status !== 'STOPPED' && !record.attachCycle)
      throw new ApiError(
        'invalid_state',
        `Only a STOPPED instance can be started; this one is ${record.status}.`,
        { details: { status: record.status } },
      );
    const work = await tx.work.of(id);
    if (record.attachCycle || work?.kind === 'start' || work?.kind === 'verify') return record;
    if (work?.kind === 'stop')
      throw new ApiError(
        'operation_in_progress',
        'The instance is still being stopped after a start that failed; start it again in a moment.',
      );
    if (!manifests.of(record).resume || !record.spec.resumable)
      throw new ApiError(
        'resume_unsupported',
        'This platform cannot resume stopped instances of this offer; the instance and its disk are unchanged.',
      );
    await reclaimCapacity(deps, tx, record);
    const now = clock.now();
    await tx.history.requested({ instanceId: id, at: now, what: 'start' });
    await putInstanceWork(tx, id, 'start', now, now + record.spec.onlineWithinMs);
    return record;
  });
}

async function reclaimCapacity(
  { catalog, supply, clock, log }: StartDeps,
  tx: Transaction,
  { id, offerId, region, host, platform: name }: InstanceRecord,
): Promise<void> {
  const current = catalog.offers.get(offerId);
  // The offer may have moved to another platform. The machine stays on its platform.
  const offer = current && { ...current, platform: name };
  // That a host refuses creates does not prove that it refuses to start a machine that it has.
  const cordons = (await activeCordons(tx, clock.now())).filter(({ refusals }) => refusals === null);
  if (offer === undefined) throw noCapacity({ id: offerId, name: offerId }, region, 'withheld');
  await claimUnit(tx, { catalog, supply, cordons }, { offer, region, host, instanceId: id }, { log, clock });
}

interface StopDeps {
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
  { store, clock, manifests }: StopDeps,
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

interface RestartDeps {
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
  { store, clock, random, manifests }: RestartDeps,
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
    await tx.history.requested({ instanceId: id, at: now, what: 'restart' });
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
