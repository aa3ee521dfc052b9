import { ApiError } from '../../contract/errors.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { InstanceRecord } from '../model/instance-record.ts';
import type { Attachment, VolumeRecord } from '../model/volume-record.ts';
import { findVolumeType } from './locations.ts';

/** Whether the instance has, or will have, a machine to attach to. */
export function isAttachable({ status }: InstanceRecord): boolean {
  return status === 'PROVISIONING' || status === 'ONLINE' || status === 'STOPPING' || status === 'STOPPED';
}

/**
 * The rules of an attachment that is asked for.
 *
 * @throws {ApiError} `invalid_request`, `invalid_state` or `volume_attached`
 */
export function assertAttachable(
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

/** Whether several instances may have it. */
export function isShareable(catalog: Catalog, volume: VolumeRecord): boolean {
  return findVolumeType(catalog, volume.region, volume.type)?.shareable ?? false;
}
