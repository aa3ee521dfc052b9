import { ApiError } from '../../contract/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { claimUnit, noCapacity } from '../capacity/claim-unit.ts';
import { activeCordons } from '../capacity/cordons.ts';
import type { Sale } from '../capacity/deployable.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Manifests } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import { getInstance, putInstanceWork } from '../model/rows.ts';
import type { Store, Transaction } from '../model/store.ts';

interface Deps {
  store: Store;
  catalog: Catalog;
  clock: Clock;
  log: Pick<Log, 'warn'>;
  manifests: Manifests;
  platform: Sale;
}

/**
 * O: POST /instances/{instanceId}/start. There is no STARTING state: the instance reads STOPPED until its SSH endpoint
 * is live again, and a second start meanwhile is a success.
 *
 * @throws {ApiError} `not_found`, `invalid_state`, `resume_unsupported`, `capacity_unavailable` or
 *   `operation_in_progress`; the disk is always kept (O: Instances, rule 4)
 */
export async function startInstance(deps: Deps, accountId: string, id: string): Promise<InstanceRecord> {
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
    await tx.history.asked({ instanceId: id, at: now, what: 'start' });
    await putInstanceWork(tx, id, 'start', now, now + record.spec.onlineWithinMs);
    return record;
  });
}

async function reclaimCapacity(
  { catalog, platform, clock, log }: Deps,
  tx: Transaction,
  { id, offerId, region, host, platform: name }: InstanceRecord,
): Promise<void> {
  const sold = catalog.offers.get(offerId);
  // The offer may have moved to another platform. The machine stays on its platform.
  const offer = sold && { ...sold, platform: name };
  // That a host refuses creates does not prove that it refuses to start a machine that it has.
  const cordons = (await activeCordons(tx, clock.now())).filter(({ refusals }) => refusals === null);
  if (offer === undefined) throw noCapacity({ id: offerId, name: offerId }, region, 'withheld');
  await claimUnit(
    tx,
    { catalog, platform, cordons },
    { offer, region, host, instanceId: id },
    { log, clock },
  );
}
