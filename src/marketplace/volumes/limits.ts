import { invalid } from '../contract/errors.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { AttachmentRecord, VolumeRecord } from '../model/volume-record.ts';
import type { VolumeProvider } from '../providers/volume-provider.ts';

/** M: Limits: "Lowercase alphanumerics, hyphens and underscores". */
const NAME = /^[a-z0-9_-]+$/;

/** M: Limits, Volume size. A region may have its own limits. */
export function sizeLimits(
  { profile }: Pick<VolumeProvider, 'profile'>,
  region: string,
): { minGb: number; maxGb: number } {
  const own = profile.regions[region];
  return { minGb: own?.min_size_gb ?? profile.min_size_gb, maxGb: own?.max_size_gb ?? profile.max_size_gb };
}

/** @throws {ApiError} VALIDATION_ERROR */
export function assertName({ provider, profile }: VolumeProvider, name: string): void {
  if (name.length > profile.name_max_length)
    throw invalid(
      'name',
      `expected at most ${profile.name_max_length} characters on ${provider.profile.name}`,
    );
  if (!NAME.test(name)) throw invalid('name', 'expected lower-case letters, digits, hyphens and underscores');
}

/** @throws {ApiError} VALIDATION_ERROR */
export function assertSize(volumeProvider: VolumeProvider, region: string, sizeGb: number): void {
  const { minGb, maxGb } = sizeLimits(volumeProvider, region);
  if (!(sizeGb >= minGb && sizeGb <= maxGb))
    throw invalid(
      'sizeInGb',
      `expected ${minGb} to ${maxGb} GB on ${volumeProvider.provider.profile.name} in ${region}`,
    );
}

/**
 * M: `volumeIds`, "each must match the deployment's provider and region". `field` names the volume in the request.
 * @throws {ApiError} VALIDATION_ERROR
 */
export function assertFits(
  field: string,
  { provider, profile }: VolumeProvider,
  volume: Pick<VolumeRecord, 'volumeId' | 'providerId' | 'region' | 'teamId' | 'status'>,
  existing: readonly AttachmentRecord[],
  target: Pick<DeploymentRecord, 'providerId' | 'region' | 'teamId'>,
): void {
  const named = `the volume ${volume.volumeId}`;
  if (volume.providerId !== target.providerId)
    throw invalid(field, `${named} is at ${volume.providerId}, the deployment at ${target.providerId}`);
  if (volume.region !== target.region)
    throw invalid(field, `${named} is in ${volume.region}, the deployment in ${target.region}`);
  if (volume.teamId !== target.teamId)
    throw invalid(field, `${named} belongs to a different team than the deployment`);
  if (volume.status !== 'available' && volume.status !== 'attached')
    throw invalid(field, `${named} is ${volume.status}; it must be available`);
  if (existing.length > 0 && !profile.shareable)
    throw invalid(
      field,
      `${named} is attached to another deployment; on ${provider.profile.name} a volume can be attached to one instance at a time`,
    );
}

/** M: Limits, "Volumes per instance". @throws {ApiError} VALIDATION_ERROR */
export function assertRoom(field: string, { provider, profile }: VolumeProvider, wanted: number): void {
  const { max_per_instance: max } = profile;
  if (max === null || wanted <= max) return;
  const limit = max === 1 ? '1 volume' : `${max} volumes`;
  throw invalid(field, `${provider.profile.name} allows at most ${limit} per instance`);
}
