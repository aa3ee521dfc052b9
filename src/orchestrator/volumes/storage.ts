import { ApiError, type Issue } from '../../contract/errors.ts';
import type { UnavailableReason, VolumeUsage } from '../../contract/extensions.ts';
import type { VolumeLocation } from '../../contract/volume.ts';
import { isStorageKnown, type StorageSupply, sellableStorageGb } from '../capacity/deployable.ts';
import type { Catalog, Offering, VolumeType } from '../catalog/catalog.ts';
import type { ObservedVolume, OwnerRef } from '../model/platform-driver.ts';
import type { VolumeRecord } from '../model/records.ts';
import type { Store, Transaction } from '../model/store.ts';

/** The volume types that a region sells. Types on platforms without volumes are left out. */
export function volumeTypesSold({ catalog, manifests }: Offering, region: string): VolumeType[] {
  const types = catalog.regions.get(region)?.volumeTypes ?? [];
  return types.filter((type) => manifests.of(type).attachVolume !== 'none');
}

/** O: GET /volumes/locations: the regions that sell volumes, by their tokens in `Configuration.regions`. */
export function listVolumeLocations(offering: Offering): VolumeLocation[] {
  return [...offering.catalog.regions.values()].flatMap(({ token, name, countryCode }) => {
    const types = volumeTypesSold(offering, token).map((type) => type.name);
    const country = countryCode !== undefined && { country_code: countryCode };
    return types.length === 0 ? [] : [{ id: token, name, types, ...country }];
  });
}

export function findVolumeType(
  catalog: Catalog,
  region: string,
  name: string | null,
): VolumeType | undefined {
  return catalog.regions.get(region)?.volumeTypes.find((type) => type.name === name);
}

/** The problem of a requested size. Undefined if it is valid. */
export function sizeIssue({ name, minSizeGb, maxSizeGb }: VolumeType, sizeGb: number): Issue | undefined {
  if (sizeGb >= minSizeGb && sizeGb <= maxSizeGb) return undefined;
  return { path: 'size_gb', message: `expected ${minSizeGb} to ${maxSizeGb} GB for type ${name}` };
}

/** The price of a volume of that size. */
export function priceMicroUsdPerHour({ priceMicroUsdPerGbHour }: VolumeType, sizeGb: number): number {
  return Math.round(priceMicroUsdPerGbHour * sizeGb);
}

/** The record with the size on the platform, if that is larger. Its price per GB stays the same. */
export function withSize(record: VolumeRecord, { sizeGb = record.sizeGb }: ObservedVolume): VolumeRecord {
  if (sizeGb <= record.sizeGb) return record;
  const priceMicroUsdPerHour = Math.round((record.priceMicroUsdPerHour * sizeGb) / record.sizeGb);
  return { ...record, sizeGb, priceMicroUsdPerHour };
}

/**
 * Sets the volume's claim on the storage of its region to `gb`. The claim is released when the volume is proved gone.
 *
 * @throws {ApiError} `capacity_unavailable` if the region has too little left; `details.reason` says why
 */
export async function claimStorage(
  tx: Transaction,
  { catalog, supply }: { catalog: Catalog; supply: StorageSupply },
  { id, region }: VolumeRecord,
  gb: number,
): Promise<void> {
  const capacityGb = sellableStorageGb(catalog, region, supply);
  if (await tx.storageClaims.take({ volumeId: id, region, gb, capacityGb })) return;
  const reason: UnavailableReason = isStorageKnown(catalog, region, supply) ? 'sold_out' : 'platform_silent';
  throw new ApiError(
    'capacity_unavailable',
    `${region} does not have enough free storage for a volume of ${gb} GB now; try a smaller one or another location.`,
    { details: { region, size_gb: gb, reason } },
  );
}

/** Sets the claim to the size of the volume, even beyond the capacity. */
export async function claimActualSize(tx: Transaction, { id, region, sizeGb }: VolumeRecord): Promise<void> {
  await tx.storageClaims.take({ volumeId: id, region, gb: sizeGb, capacityGb: null });
}

/** What a platform said about the use of its volumes. */
export interface UsageReading {
  measuredAt: number;
  usedBytes: ReadonlyMap<OwnerRef, number>;
}

/** Reads the use of a platform's volumes. Undefined if the platform does not report it, or another server serves it. */
export type ReadUsage = (platform: string) => Promise<UsageReading | undefined>;

/** The volumes of the account whose use is known. */
export async function listVolumeUsage(
  { store, readUsage }: { store: Pick<Store, 'read'>; readUsage: ReadUsage },
  accountId: string,
): Promise<VolumeUsage[]> {
  const rows = await store.read.volumes.liveOf(accountId);
  const platforms = [...new Set(rows.map(({ platform }) => platform))];
  const readings = new Map(
    await Promise.all(platforms.map(async (platform) => [platform, await readUsage(platform)] as const)),
  );
  return rows.flatMap(({ id, platform, ownerRef }) => {
    const reading = readings.get(platform);
    const usedBytes = reading?.usedBytes.get(ownerRef);
    if (reading === undefined || usedBytes === undefined) return [];
    return [{ id, used_bytes: usedBytes, measured_at: new Date(reading.measuredAt).toISOString() }];
  });
}
