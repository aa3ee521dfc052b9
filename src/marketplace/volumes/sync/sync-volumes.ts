import { LeaseLost } from '../../../work/lease.ts';
import { StoreUnavailable } from '../../model/store.ts';
import { logNames, type VolumeRecord } from '../../model/volume-record.ts';
import type { Provider } from '../../providers/provider.ts';
import { toVolumeProvider, type VolumeProvider } from '../../providers/volume-provider.ts';
import type { VolumeDeps } from '../refusal.ts';
import { trySyncVolume } from './sync-volume.ts';

const AT_THE_SAME_TIME = 8;

/**
 * Syncs every volume of a provider that has unfinished work: creates, attachments in transit, resizes and deletions
 * without proof. A failure of one does not delay the others.
 *
 * @throws {StoreUnavailable | LeaseLost} once, however many volumes met it
 */
export async function syncVolumes(deps: VolumeDeps, provider: Provider): Promise<void> {
  const volumeProvider = toVolumeProvider(provider);
  if (volumeProvider === null) return;
  const records = await deps.store.read.volumes.toSync(provider.id);
  for (let from = 0; from < records.length; from += AT_THE_SAME_TIME)
    await allOf(
      records.slice(from, from + AT_THE_SAME_TIME).map((record) => syncOne(deps, volumeProvider, record)),
    );
}

async function syncOne(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  record: VolumeRecord,
): Promise<void> {
  try {
    await trySyncVolume(deps, volumeProvider, record.id);
  } catch (error) {
    if (error instanceof StoreUnavailable || error instanceof LeaseLost) throw error;
    const fields = { err: error, ...logNames(record), provider: record.providerId };
    deps.log.error(fields, 'a volume could not be synced; it will be retried');
  }
}

/** Waits for all of them, and rejects as the first one that did. */
async function allOf(work: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(work);
  await Promise.all(work);
}
