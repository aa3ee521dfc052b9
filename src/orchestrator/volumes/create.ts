import { type Issue, invalidRequest } from '../../contract/errors.ts';
import type { CreateVolumeRequest } from '../../contract/volume.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import { assertWithinQuotas, type Created, createOnce, type Quotas } from '../accounts/quotas.ts';
import type { StorageSupply } from '../capacity/deployable.ts';
import type { Offering, VolumeType } from '../catalog/catalog.ts';
import { refOf } from '../model/attempt.ts';
import { CREATE_IS_OPEN } from '../model/platform-resource.ts';
import type { VolumeRecord } from '../model/records.ts';
import { lockInstances, putVolumeWork } from '../model/rows.ts';
import type { Store, Transaction } from '../model/store.ts';
import { APART, isAttachable, type Place } from './attach.ts';
import { claimStorage, priceMicroUsdPerHour, sizeIssue, volumeTypesSold } from './storage.ts';

interface Deps extends Offering {
  store: Store;
  clock: Clock;
  random: Random;
  supply: StorageSupply;
  quotas: Quotas;
}

/**
 * O: POST /volumes. The transaction that writes the volume also claims its storage.
 *
 * @throws {ApiError} `invalid_request`, `quota_exceeded`, `capacity_unavailable` or
 *   `idempotency_mismatch`; then nothing was written
 */
export async function createVolume(
  deps: Deps,
  accountId: string,
  request: CreateVolumeRequest,
  { key, requestId }: { key?: string | undefined; requestId?: string } = {},
): Promise<Created<VolumeRecord>> {
  return deps.store.transact((tx) =>
    createOnce(
      tx,
      { accountId, operation: 'createVolume', request, key },
      (id) => tx.volumes.byId(id),
      () => insertVolume(deps, tx, accountId, request, requestId),
    ),
  );
}

async function insertVolume(
  { clock, random, supply, quotas, ...offering }: Deps,
  tx: Transaction,
  accountId: string,
  request: CreateVolumeRequest,
  requestId: string | undefined,
): Promise<VolumeRecord> {
  const found = findType(offering, request);
  const instanceIds = [...new Set(request.instance_ids ?? [])];
  const place = { region: request.region, platform: 'type' in found ? found.type.platform : undefined };
  const issues = await instanceIssues(tx, accountId, place, instanceIds);
  if (!('type' in found)) throw invalidRequest([found, ...issues]);
  const { type } = found;
  if (instanceIds.length > 1 && !type.shareable)
    issues.push({
      path: 'instance_ids',
      message: `expected one instance: a volume of type ${type.name} cannot be shared`,
    });
  if (issues.length > 0) throw invalidRequest(issues);
  const now = clock.now();
  const id = `vol-${random.bytes(16).toString('hex')}`;
  const record: VolumeRecord = {
    id,
    accountId,
    ownerRef: refOf(id),
    host: null,
    destroyOrder: null,
    platform: type.platform,
    name: request.name,
    sizeGb: request.size_gb,
    region: request.region,
    type: type.name,
    status: 'CREATING',
    priceMicroUsdPerHour: priceMicroUsdPerHour(type, request.size_gb),
    createdAt: now,
    deletedAt: null,
    createOpenUntil: CREATE_IS_OPEN,
    requestId: requestId ?? null,
  };
  await assertWithinQuotas(tx, quotas, accountId, { volumes: 1, storageGb: record.sizeGb }, now);
  await tx.volumes.insert(record);
  await claimStorage(tx, { ...offering, supply }, record, record.sizeGb);
  for (const instanceId of instanceIds)
    await tx.volumes.putAttachment({ volumeId: id, instanceId, state: 'attaching' });
  await putVolumeWork(tx, id, 'create', now);
  return record;
}

function findType(
  offering: Offering,
  { region, type: name, size_gb: sizeGb }: CreateVolumeRequest,
): { type: VolumeType } | Issue {
  const types = volumeTypesSold(offering, region);
  if (types.length === 0) return { path: 'region', message: 'expected a region of /volumes/locations' };
  const type = name === undefined ? types[0] : types.find((candidate) => candidate.name === name);
  if (type === undefined)
    return { path: 'type', message: `expected one of: ${types.map((known) => known.name).join(', ')}` };
  const issue = sizeIssue(type, sizeGb);
  return issue ?? { type };
}

async function instanceIssues(
  tx: Transaction,
  accountId: string,
  { region, platform }: Place,
  instanceIds: readonly string[],
): Promise<Issue[]> {
  const issues: Issue[] = [];
  const instances = await lockInstances(tx, instanceIds);
  for (const [index, id] of instanceIds.entries()) {
    const instance = instances.get(id);
    const path = `instance_ids[${index}]`;
    if (instance === undefined || instance.accountId !== accountId || instance.status === 'DESTROYED')
      issues.push({ path, message: 'expected the id of an existing instance' });
    else if (instance.region !== region)
      issues.push({ path, message: `expected an instance in ${region}, this one is in ${instance.region}` });
    else if (platform !== undefined && instance.platform !== platform)
      issues.push({ path, message: `expected an instance to which such a volume can be attached: ${APART}` });
    else if (!isAttachable(instance))
      issues.push({ path, message: `expected a live instance, this one is ${instance.status}` });
  }
  return issues;
}
