import { ApiError } from '../../contract/errors.ts';
import { type StorageSale, sellableStorageGb } from '../capacity/deployable.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';

/**
 * Makes the volume's claim on the storage of its location one of `gb`. A claim is given back when the volume is proved
 * gone.
 *
 * @throws {ApiError} `capacity_unavailable` where the location has not that much left
 */
export async function claimStorage(
  tx: Transaction,
  { catalog, platform }: { catalog: Catalog; platform: StorageSale },
  { id, region }: VolumeRecord,
  gb: number,
): Promise<void> {
  const capacityGb = sellableStorageGb(catalog, region, platform);
  if (await tx.storageClaims.take({ volumeId: id, region, gb, capacityGb })) return;
  throw new ApiError(
    'capacity_unavailable',
    `${region} has not enough free storage for a volume of ${gb} GB now; try a smaller one or another location.`,
    { details: { region, size_gb: gb } },
  );
}

/** Makes the claim what the volume has: for what is there already, whether it fits or not. */
export async function claimWhatItHas(tx: Transaction, { id, region, sizeGb }: VolumeRecord): Promise<void> {
  await tx.storageClaims.take({ volumeId: id, region, gb: sizeGb, capacityGb: null });
}
