import { invalidRequest } from '../../contract/errors.ts';
import type { CreateInstanceRequest } from '../../contract/instance.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { assertWithinQuotas, type Created, createOnce, type Quotas } from '../accounts/quotas.ts';
import { activeCordons, takeTrial } from '../capacity/cordons.ts';
import { claimUnit, type Supply } from '../capacity/deployable.ts';
import { type Catalog, effectivePriceMicroUsdPerHour } from '../catalog/catalog.ts';
import { refOf } from '../model/attempt.ts';
import type { Manifests } from '../model/platform-driver.ts';
import { CREATE_IS_OPEN } from '../model/platform-resource.ts';
import { type InstanceRecord, type InstanceSpec, untouchedInstance } from '../model/records.ts';
import { putInstanceWork } from '../model/rows.ts';
import type { Store, Transaction } from '../model/store.ts';
import { planInlineAttachments, putInlineAttachments } from '../volumes/attach.ts';
import { findPlanIssues, planInstance } from './plan.ts';

export interface CreateDeps {
  store: Store;
  catalog: Catalog;
  manifests: Manifests;
  clock: Clock;
  log: Pick<Log, 'warn'>;
  random: Random;
  supply: Supply;
  quotas: Quotas;
}

/** The request that a create comes from. */
type Origin = Pick<InstanceSpec, 'requestId' | 'createdBy'>;

/**
 * O: POST /instances. One transaction writes the instance, its capacity claim and its work. The platform is called
 * afterwards, so the reply does not wait for it.
 *
 * @throws {ApiError} `invalid_request`, `cloud_init_unsupported`, `quota_exceeded`, `capacity_unavailable`
 *   or `idempotency_mismatch`; then nothing was written
 */
export async function createInstance(
  deps: CreateDeps,
  accountId: string,
  request: CreateInstanceRequest,
  { key, ...origin }: { key?: string | undefined } & Origin = {},
): Promise<Created<InstanceRecord>> {
  return deps.store.transact((tx) =>
    createOnce(
      tx,
      { accountId, operation: 'createInstance', request, key },
      (id) => tx.instances.byId(id),
      () => insertInstance(deps, tx, accountId, request, origin),
    ),
  );
}

async function insertInstance(
  { catalog, manifests, clock, log, random, supply, quotas }: CreateDeps,
  tx: Transaction,
  accountId: string,
  request: CreateInstanceRequest,
  { requestId, createdBy }: Origin,
): Promise<InstanceRecord> {
  const now = clock.now();
  const { region, volume_ids: volumeIds = [] } = request;
  const platformOf = catalog.offers.get(request.configuration_id)?.platform;
  const place = { region, platform: platformOf };
  const { volumes, issues } = await planInlineAttachments(tx, catalog, accountId, place, volumeIds);
  if (issues.length > 0)
    throw invalidRequest([...findPlanIssues({ catalog, manifests }, request), ...issues]);
  const { offer, spec } = planInstance({ catalog, manifests }, request);
  const id = `inst-${random.bytes(16).toString('hex')}`;
  const record: InstanceRecord = {
    ...untouchedInstance,
    id,
    accountId,
    ownerRef: refOf(id),
    platform: offer.platform,
    name: request.name ?? null,
    offerId: offer.id,
    region,
    status: 'PROVISIONING',
    spec: { ...spec, requestId, createdBy },
    priceMicroUsdPerHour: effectivePriceMicroUsdPerHour(offer),
    createdAt: now,
    updatedAt: now,
    createOpenUntil: CREATE_IS_OPEN,
  };
  await assertWithinQuotas(tx, quotas, accountId, { instances: 1 }, now);
  await tx.instances.insert(record);
  await takeTrial(tx, { kind: 'offer', name: offer.id, platform: offer.platform }, id, now);
  const cordons = await activeCordons(tx, now, id);
  await claimUnit(tx, { catalog, supply, cordons }, { offer, region, instanceId: id }, { log, clock });
  await putInlineAttachments(tx, record, volumes);
  await putInstanceWork(tx, id, 'create', now, now + spec.onlineWithinMs);
  return record;
}
