import type { VolumeUsage } from '../../contract/extensions.ts';
import type { OwnerRef } from '../model/platform-driver.ts';
import type { Store } from '../model/store.ts';

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
