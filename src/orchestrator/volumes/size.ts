import type { Issue } from '../../contract/errors.ts';
import type { VolumeType } from '../catalog/catalog.ts';
import type { ObservedVolume } from '../model/platform-driver.ts';
import type { VolumeRecord } from '../model/volume-record.ts';

/** What is wrong with a size that is asked for; undefined: nothing. */
export function sizeIssue({ name, minSizeGb, maxSizeGb }: VolumeType, sizeGb: number): Issue | undefined {
  if (sizeGb >= minSizeGb && sizeGb <= maxSizeGb) return undefined;
  return { path: 'size_gb', message: `expected ${minSizeGb} to ${maxSizeGb} GB for type ${name}` };
}

/** What a volume of that size costs. */
export function priceMicroUsdPerHour({ priceMicroUsdPerGbHour }: VolumeType, sizeGb: number): number {
  return Math.round(priceMicroUsdPerGbHour * sizeGb);
}

/** It may have grown since what is known of it was written: its price per GB stays. */
export function withSize(record: VolumeRecord, { sizeGb = record.sizeGb }: ObservedVolume): VolumeRecord {
  if (sizeGb <= record.sizeGb) return record;
  const priceMicroUsdPerHour = Math.round((record.priceMicroUsdPerHour * sizeGb) / record.sizeGb);
  return { ...record, sizeGb, priceMicroUsdPerHour };
}
