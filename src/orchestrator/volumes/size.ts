import type { Issue } from '../../contract/errors.ts';
import type { VolumeType } from '../catalog/catalog.ts';

/** What is wrong with a size that is asked for; undefined: nothing. */
export function sizeIssue({ name, minSizeGb, maxSizeGb }: VolumeType, sizeGb: number): Issue | undefined {
  if (sizeGb >= minSizeGb && sizeGb <= maxSizeGb) return undefined;
  return { path: 'size_gb', message: `expected ${minSizeGb} to ${maxSizeGb} GB for type ${name}` };
}

/** What a volume of that size costs. */
export function priceMicroUsdPerHour({ priceMicroUsdPerGbHour }: VolumeType, sizeGb: number): number {
  return Math.round(priceMicroUsdPerGbHour * sizeGb);
}
