import { ApiError, invalidRequest } from '../../contract/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import { assertWithinQuotas, type Quotas } from '../accounts/quotas.ts';
import type { StorageSupply } from '../capacity/deployable.ts';
import type { Catalog, VolumeType } from '../catalog/catalog.ts';
import type { Manifests } from '../model/platform-driver.ts';
import type { VolumeRecord } from '../model/records.ts';
import { getVolume, putVolumeWork } from '../model/rows.ts';
import type { Store, Transaction } from '../model/store.ts';
import { resizeCookie } from '../model/work.ts';
import { claimStorage, findVolumeType, priceMicroUsdPerHour, sizeIssue } from './storage.ts';

interface Deps {
  store: Store;
  catalog: Catalog;
  clock: Clock;
  manifests: Manifests;
  supply: StorageSupply;
  quotas: Quotas;
}

/** How long the platform has for a resize, in milliseconds. */
const RESIZE_WITHIN_MS = 10 * 60_000;

/**
 * POST /x/volumes/{volumeId}/resize: only enlarges. The volume reads its old size and price until the platform has
 * resized it. Its current size is a success. The additional storage is claimed at once.
 *
 * @throws {ApiError} `not_found`, `invalid_request`, `invalid_state`, `operation_in_progress`, `volume_attached`,
 *   `resize_unsupported`, `quota_exceeded` or `capacity_unavailable`; then nothing was written
 */
export async function resizeVolume(
  { store, catalog, clock, manifests, supply, quotas }: Deps,
  accountId: string,
  id: string,
  sizeGb: number,
): Promise<VolumeRecord> {
  return store.transact(async (tx) => {
    // The account is locked before its rows, as in a create.
    await tx.accountUse.lock(accountId);
    const volume = await getVolume(tx.volumes, accountId, id);
    const manifest = manifests.of(volume);
    if (manifest.resizeVolume === 'none')
      throw new ApiError('resize_unsupported', 'This platform cannot change the size of a volume.');
    await assertIdle(tx, volume);
    const type = findVolumeType(catalog, volume.region, volume.type);
    assertSize(type, volume, sizeGb);
    if (sizeGb === volume.sizeGb || type === undefined) return volume;
    if (volume.status === 'ATTACHED' && manifest.resizeVolume === 'detached')
      throw new ApiError(
        'volume_attached',
        'This platform can resize a volume only while it is not attached; detach it first.',
      );
    const now = clock.now();
    const added = sizeGb - (await tx.storageClaims.heldBy(id));
    await assertWithinQuotas(tx, quotas, accountId, { storageGb: added }, now);
    await claimStorage(tx, { catalog, supply }, volume, sizeGb);
    const price = priceMicroUsdPerHour(type, sizeGb);
    const cookie = resizeCookie.encode({ sizeGb, priceMicroUsdPerHour: price, driver: null });
    await putVolumeWork(tx, id, 'resize', now, now + RESIZE_WITHIN_MS, cookie);
    return volume;
  });
}

async function assertIdle(tx: Transaction, { id, status }: VolumeRecord): Promise<void> {
  if (status === 'DELETING' || status === 'ERROR')
    throw new ApiError('invalid_state', `The volume is ${status} and cannot be resized.`, {
      details: { status },
    });
  const isSettled = status === 'AVAILABLE' || status === 'ATTACHED';
  if (!isSettled || (await tx.work.of(id)) !== null)
    throw new ApiError(
      'operation_in_progress',
      'The volume is being created, attached, detached or resized; try again in a moment.',
    );
}

function assertSize(type: VolumeType | undefined, volume: VolumeRecord, sizeGb: number): void {
  if (sizeGb < volume.sizeGb)
    throw invalidRequest([
      { path: 'size_gb', message: `expected at least ${volume.sizeGb}: a volume cannot shrink` },
    ]);
  if (sizeGb === volume.sizeGb) return;
  if (type === undefined)
    throw new ApiError(
      'invalid_state',
      `Volumes of type ${volume.type} are no longer sold in ${volume.region}; this one cannot be resized.`,
    );
  const issue = sizeIssue(type, sizeGb);
  if (issue !== undefined) throw invalidRequest([issue]);
}
