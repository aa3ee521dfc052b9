import type { Reader } from '../../model/store.ts';
import type { VolumeRecord } from '../../model/volume-record.ts';

/**
 * A volume other than `record` that has this volume of the provider and whose deletion is not proved. Null: there is
 * none.
 */
export async function volumeHolderOf(
  { volumes }: Pick<Reader, 'volumes'>,
  { id, providerId }: Pick<VolumeRecord, 'id' | 'providerId'>,
  providerVolumeId: string,
): Promise<VolumeRecord | null> {
  const records = await volumes.byProviderVolume(providerId, providerVolumeId);
  return records.find((it) => it.id !== id && it.cleanup !== 'done') ?? null;
}
