import { invalid } from '../contract/errors.ts';
import type { VolumeProvider } from '../providers/volume-provider.ts';

/** M: Limits: "Lowercase alphanumerics, hyphens and underscores". */
const NAME = /^[a-z0-9_-]+$/;

/** M: Limits, Volume size; a region may have limits of its own. */
export function sizeLimits(
  { profile }: Pick<VolumeProvider, 'profile'>,
  region: string,
): { minGb: number; maxGb: number } {
  const own = profile.regions[region];
  return { minGb: own?.min_size_gb ?? profile.size_gb.min, maxGb: own?.max_size_gb ?? profile.size_gb.max };
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
