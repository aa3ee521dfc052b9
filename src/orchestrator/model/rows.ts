import { ApiError } from '../../contract/errors.ts';
import { idOf } from './attempt.ts';
import type { OwnerRef } from './platform-driver.ts';
import type { InstanceRecord, VolumeRecord } from './records.ts';
import type { InstanceReader, Reader, Transaction, VolumeReader } from './store.ts';
import type { InstanceWorkKind, ResourceKind, VolumeWorkKind } from './work.ts';

/**
 * O: GET /instances/{instanceId}. A 404 is the most dangerous answer, since the client reads it as DESTROYED. It is
 * sent only for a tombstone in this database, or for an id that this account never had.
 *
 * @throws {ApiError} `not_found`
 */
export async function getInstance(
  instances: InstanceReader,
  accountId: string,
  id: string,
): Promise<InstanceRecord> {
  const record = await instances.byId(id);
  if (record === null || record.accountId !== accountId || record.status === 'DESTROYED')
    throw new ApiError('not_found', 'There is no such instance.');
  return record;
}

/** O: GET /volumes/{volumeId}. @throws {ApiError} `not_found` */
export async function getVolume(volumes: VolumeReader, accountId: string, id: string): Promise<VolumeRecord> {
  const record = await volumes.byId(id);
  if (record === null || record.accountId !== accountId || record.deletedAt !== null)
    throw new ApiError('not_found', 'There is no such volume.');
  return record;
}

export function rowOf(
  { instances, volumes }: Pick<Reader, 'instances' | 'volumes'>,
  kind: ResourceKind,
  id: string,
): Promise<InstanceRecord | VolumeRecord | null> {
  return kind === 'instance' ? instances.byId(id) : volumes.byId(id);
}

/** The row of a resource that a platform shows as `ref`. `ref` is its current name, or the name of another attempt. */
export async function rowShownAs(
  { instances, volumes }: Pick<Reader, 'instances' | 'volumes'>,
  kind: ResourceKind,
  ref: OwnerRef,
): Promise<InstanceRecord | VolumeRecord | null> {
  const rows = kind === 'instance' ? instances : volumes;
  return (await rows.byOwnerRef(ref)) ?? (await rows.byId(idOf(ref)));
}

/** Reads, and thereby locks, instances in the order that every transaction uses. An id without a row is left out. */
export function lockInstances(
  { instances }: Pick<Transaction, 'instances'>,
  ids: Iterable<string>,
): Promise<Map<string, InstanceRecord>> {
  return inOrder(ids, (id) => instances.byId(id));
}

/** Like {@link lockInstances}, for volumes. Call it after the instances are locked. */
export function lockVolumes(
  { volumes }: Pick<Transaction, 'volumes'>,
  ids: Iterable<string>,
): Promise<Map<string, VolumeRecord>> {
  return inOrder(ids, (id) => volumes.byId(id));
}

/**
 * Locks the volumes that are attached to instances. The instances are locked already, so no volume can be added
 * meanwhile.
 */
export async function lockVolumesOf(
  tx: Pick<Transaction, 'volumes'>,
  instanceIds: Iterable<string>,
  ...others: string[]
): Promise<Map<string, VolumeRecord>> {
  const ids = new Set(others);
  for (const instanceId of instanceIds)
    for (const { volumeId } of await tx.volumes.attachmentsOfInstance(instanceId)) ids.add(volumeId);
  return lockVolumes(tx, ids);
}

async function inOrder<Row>(
  ids: Iterable<string>,
  read: (id: string) => Promise<Row | null>,
): Promise<Map<string, Row>> {
  const rows = new Map<string, Row>();
  for (const id of [...new Set(ids)].sort()) {
    const row = await read(id);
    if (row !== null) rows.set(id, row);
  }
  return rows;
}

/** Puts the next work of an instance, due at `now`. */
export async function putInstanceWork(
  tx: Transaction,
  resourceId: string,
  kind: InstanceWorkKind,
  now: number,
  deadlineAt: number | null = null,
  cookie: string | null = null,
): Promise<void> {
  await tx.work.put({ resourceId, resourceKind: 'instance', kind, notBefore: now, deadlineAt, cookie });
}

/** Puts the next work of a volume, due at `now`. */
export async function putVolumeWork(
  tx: Transaction,
  resourceId: string,
  kind: VolumeWorkKind,
  now: number,
  deadlineAt: number | null = null,
  cookie: string | null = null,
): Promise<void> {
  await tx.work.put({ resourceId, resourceKind: 'volume', kind, notBefore: now, deadlineAt, cookie });
}

/** Makes the attach work of an instance's volumes due at once. The caller has locked the instance. */
export async function makeAttachmentsDue(tx: Transaction, instanceId: string, now: number): Promise<void> {
  for (const id of (await lockVolumesOf(tx, [instanceId])).keys())
    if ((await tx.work.of(id))?.kind === 'attach') await tx.work.makeDue(id, now);
}
