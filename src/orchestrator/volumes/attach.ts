import { ApiError, type Issue } from '../../contract/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Attachment, InstanceRecord, VolumeRecord } from '../model/records.ts';
import {
  getInstance,
  getVolume,
  lockInstances,
  lockVolumes,
  lockVolumesOf,
  putVolumeWork,
} from '../model/rows.ts';
import type { Store, Transaction } from '../model/store.ts';
import { findVolumeType } from './storage.ts';
import { updateAttachmentStatus } from './transition.ts';

/**
 * O: POST /volumes/{volumeId}/attach. Attaches to all of the instances or to none. Attaching to an already attached
 * instance is a success.
 *
 * @throws {ApiError} `not_found` (the volume, or any of the instances), `invalid_state`, `volume_attached`
 */
export async function attachVolume(
  { store, catalog, clock }: { store: Store; catalog: Catalog; clock: Clock },
  accountId: string,
  id: string,
  instanceIds: readonly string[],
): Promise<VolumeRecord> {
  return store.transact(async (tx) => {
    await lockInstances(tx, instanceIds);
    const volume = await getVolume(tx.volumes, accountId, id);
    const existing = await tx.volumes.attachmentsOfVolume(id);
    const wanted = new Set(
      existing.filter(({ state }) => state !== 'detaching').map(({ instanceId }) => instanceId),
    );
    const instances = [];
    for (const instanceId of new Set(instanceIds))
      instances.push(await getInstance(tx.instances, accountId, instanceId));
    const added = instances.filter((instance) => !wanted.has(instance.id));
    if (added.length === 0) return volume;
    assertAttachable(catalog, volume, existing, added);
    const now = clock.now();
    for (const { id: instanceId } of added) {
      await tx.volumes.putAttachment({ volumeId: id, instanceId, state: 'attaching' });
      await tx.history.requested({ instanceId, at: now, what: `attach ${id}` });
    }
    await workOnAttachments(tx, volume, now);
    return updateAttachmentStatus(tx, volume);
  });
}

/**
 * O: POST /volumes/{volumeId}/detach. Without `instanceIds`, detaches from all instances. Detaching an instance without
 * the volume is a success. The volume reads as attached until the platform's attachment record is gone.
 *
 * @throws {ApiError} `not_found`
 */
export async function detachVolume(
  { store, clock }: { store: Store; clock: Clock },
  accountId: string,
  id: string,
  instanceIds?: readonly string[],
): Promise<VolumeRecord> {
  return store.transact(async (tx) => {
    const volume = await getVolume(tx.volumes, accountId, id);
    const attachments = await tx.volumes.attachmentsOfVolume(id);
    const removed = attachments.filter(
      ({ instanceId, state }) => state !== 'detaching' && (instanceIds?.includes(instanceId) ?? true),
    );
    if (removed.length === 0) return volume;
    const now = clock.now();
    for (const { instanceId } of removed)
      await tx.history.requested({ instanceId, at: now, what: `detach ${id}` });
    return dropAttachments(tx, volume, removed, now);
  });
}

/** Where something is to be attached. `platform` is undefined if the request is invalid. */
export interface Place {
  region: string;
  platform: string | undefined;
}

/**
 * Tells a client that a volume and an instance are on different platforms. It omits their names, which are internal.
 */
export const APART = 'volumes of its type are in another part of the region';

const HAS_ATTACHMENTS: readonly VolumeRecord['status'][] = ['CREATING', 'ATTACHING', 'ATTACHED', 'DETACHING'];

/**
 * Checks the `volume_ids` of a create: each exists, belongs to this account and region, is usable, and is not attached
 * unless it can be shared.
 */
export async function planInlineAttachments(
  tx: Transaction,
  catalog: Catalog,
  accountId: string,
  place: Place,
  volumeIds: readonly string[],
): Promise<{ volumes: VolumeRecord[]; issues: Issue[] }> {
  const volumes: VolumeRecord[] = [];
  const issues: Issue[] = [];
  const found = await lockVolumes(tx, volumeIds);
  for (const [index, id] of volumeIds.entries()) {
    const volume = found.get(id);
    const problem = await findProblem(tx, catalog, volume, accountId, place);
    if (problem !== undefined) issues.push({ path: `volume_ids[${index}]`, message: problem });
    else if (volume !== undefined && !volumes.some((known) => known.id === id)) volumes.push(volume);
  }
  return { volumes, issues };
}

async function findProblem(
  tx: Transaction,
  catalog: Catalog,
  volume: VolumeRecord | undefined,
  accountId: string,
  { region, platform }: Place,
): Promise<string | undefined> {
  if (volume === undefined || volume.accountId !== accountId || volume.deletedAt !== null)
    return 'expected the id of an existing volume';
  if (volume.region !== region) return `expected a volume in ${region}, this one is in ${volume.region}`;
  if (platform !== undefined && volume.platform !== platform)
    return `expected a volume that can be attached to this offer: ${APART}`;
  const mayBeAttached = isShareable(catalog, volume) && HAS_ATTACHMENTS.includes(volume.status);
  if (mayBeAttached) return undefined;
  if (volume.status !== 'AVAILABLE' && volume.status !== 'CREATING')
    return `expected an AVAILABLE volume, this one is ${volume.status}`;
  const isFree = (await tx.volumes.attachmentsOfVolume(volume.id)).length === 0;
  return isFree ? undefined : 'expected a volume that is not attached';
}

/** Writes the attachments. They are made once the machine exists. */
export async function putInlineAttachments(
  tx: Transaction,
  instance: InstanceRecord,
  volumes: readonly VolumeRecord[],
): Promise<void> {
  for (const volume of volumes) {
    await tx.volumes.putAttachment({ volumeId: volume.id, instanceId: instance.id, state: 'attaching' });
    await updateAttachmentStatus(tx, volume);
    await workOnAttachments(tx, volume, instance.createdAt);
  }
}

/**
 * Puts the work that attaches and detaches a volume as wanted. A volume that is being made or resized does that
 * afterwards; one that is being deleted is detached by its deletion.
 */
export async function workOnAttachments(
  tx: Transaction,
  { id, status }: VolumeRecord,
  now: number,
): Promise<void> {
  if (status === 'CREATING' || status === 'DELETING') return;
  if ((await tx.work.of(id))?.kind === 'resize') return;
  await putVolumeWork(tx, id, 'attach', now);
}

/**
 * Removes attachments of a volume. They are `detaching` until the platform's record is gone. For a volume that is still
 * being made, the platform has no record.
 */
async function dropAttachments(
  tx: Transaction,
  volume: VolumeRecord,
  attachments: readonly Attachment[],
  now: number,
): Promise<VolumeRecord> {
  for (const attachment of attachments)
    if (volume.status === 'CREATING')
      await tx.volumes.removeAttachment(attachment.volumeId, attachment.instanceId);
    else await tx.volumes.putAttachment({ ...attachment, state: 'detaching' });
  await workOnAttachments(tx, volume, now);
  return updateAttachmentStatus(tx, volume);
}

/** Detaches the volumes of an instance that has ended. The caller has locked the instance. */
export async function dropAttachmentsOf(tx: Transaction, instanceId: string, now: number): Promise<void> {
  const volumes = await lockVolumesOf(tx, [instanceId]);
  if (volumes.size === 0) return;
  for (const attachment of await tx.volumes.attachmentsOfInstance(instanceId)) {
    const volume = volumes.get(attachment.volumeId);
    if (volume !== undefined) await dropAttachments(tx, volume, [attachment], now);
  }
}

/** Whether the instance has, or will have, a machine to attach to. */
export function isAttachable({ status }: InstanceRecord): boolean {
  return status === 'PROVISIONING' || status === 'ONLINE' || status === 'STOPPING' || status === 'STOPPED';
}

/**
 * Checks the rules for requested attachments.
 *
 * @throws {ApiError} `invalid_request`, `invalid_state` or `volume_attached`
 */
function assertAttachable(
  catalog: Catalog,
  volume: VolumeRecord,
  existing: readonly Attachment[],
  instances: readonly InstanceRecord[],
): void {
  if (volume.status === 'DELETING' || volume.status === 'ERROR')
    throw new ApiError('invalid_state', `The volume is ${volume.status} and cannot be attached.`, {
      details: { status: volume.status },
    });
  for (const instance of instances) {
    if (instance.region !== volume.region)
      throw new ApiError(
        'invalid_state',
        `The volume is in ${volume.region}, the instance ${instance.id} in ${instance.region}.`,
      );
    if (instance.platform !== volume.platform)
      throw new ApiError(
        'invalid_state',
        `The volume cannot be attached to the instance ${instance.id}: ${APART}.`,
      );
    if (!isAttachable(instance))
      throw new ApiError(
        'invalid_state',
        `The instance ${instance.id} is ${instance.status}; a volume is attached to a live one.`,
        { details: { status: instance.status } },
      );
  }
  const holders = new Set([
    ...existing.map(({ instanceId }) => instanceId),
    ...instances.map(({ id }) => id),
  ]);
  if (holders.size > 1 && !isShareable(catalog, volume))
    throw new ApiError(
      'volume_attached',
      `A volume of type ${volume.type} can be attached to one instance at a time; detach it first.`,
    );
}

/** Whether several instances may have the volume attached. */
function isShareable(catalog: Catalog, volume: VolumeRecord): boolean {
  return findVolumeType(catalog, volume.region, volume.type)?.shareable ?? false;
}
