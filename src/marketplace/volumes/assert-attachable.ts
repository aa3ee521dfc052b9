import { invalid } from '../contract/errors.ts';
import type { AttachmentRecord, VolumeRecord } from '../records/volume-record.ts';
import type { VolumeSeller } from './seller.ts';

/** Where volumes are to be attached. */
interface AttachTarget {
  providerId: string;
  region: string;
  teamId: string;
}

/**
 * What holds for every attachment, at a launch too (M: `volumeIds`, "each must match the deployment's provider and
 * region"). `field` is what the request named the volume by.
 *
 * @throws {ApiError} VALIDATION_ERROR
 */
export function assertFits(
  field: string,
  { provider, profile }: VolumeSeller,
  volume: VolumeRecord,
  existing: readonly AttachmentRecord[],
  target: AttachTarget,
): void {
  const named = `the volume ${volume.volumeId}`;
  if (volume.providerId !== target.providerId)
    throw invalid(field, `${named} is at ${volume.providerId}, the deployment at ${target.providerId}`);
  if (volume.region !== target.region)
    throw invalid(field, `${named} is in ${volume.region}, the deployment in ${target.region}`);
  if (volume.teamId !== target.teamId)
    throw invalid(field, `${named} belongs to another team than the deployment`);
  if (volume.status !== 'available' && volume.status !== 'attached')
    throw invalid(field, `${named} is ${volume.status}; it must be available`);
  if (existing.length > 0 && !profile.shareable)
    throw invalid(
      field,
      `${named} is on another deployment; on ${provider.profile.name} a volume is on one instance at a time`,
    );
}

/**
 * M: Limits, "Volumes per instance".
 *
 * @throws {ApiError} VALIDATION_ERROR
 */
export function assertRoom(field: string, { provider, profile }: VolumeSeller, wanted: number): void {
  const { max_per_instance: max } = profile;
  if (max === null || wanted <= max) return;
  const limit = max === 1 ? '1 volume' : `${max} volumes`;
  throw invalid(field, `${provider.profile.name} has at most ${limit} per instance`);
}
