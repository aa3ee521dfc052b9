import { ProviderError } from '../../../client/orchestrator-client.ts';
import { endBilling } from '../../ledger/bill.ts';
import { logNames, type VolumeRecord } from '../../model/volume-record.ts';
import { isNotFoundTrusted } from '../../providers/loss-cap.ts';
import type { Provider } from '../../providers/provider.ts';
import type { VolumeDeps } from '../refusal.ts';
import { transactOnVolume, writeVolume } from '../snapshot.ts';

type FailedDeps = Pick<VolumeDeps, 'store' | 'clock' | 'random' | 'log' | 'options'>;

/**
 * Checks each volume in `error` that is still billed. Where the provider answers 404, billing ends; the volume stays
 * in `error` until its user deletes it.
 */
export async function endFailedVolumes(deps: FailedDeps, provider: Provider): Promise<void> {
  for (const record of await deps.store.read.volumes.failed(provider.id))
    if (await isNotFound(deps, provider, record)) await endBill(deps, record);
}

async function isNotFound(
  { options }: FailedDeps,
  { client }: Provider,
  { providerVolumeId }: VolumeRecord,
): Promise<boolean> {
  if (providerVolumeId === null) return true;
  try {
    await client.getVolume(providerVolumeId, { timeoutMs: options.polling.callTimeoutMs });
    return false;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return error.problem === 'not_found';
  }
}

async function endBill(deps: FailedDeps, { id, providerId, providerVolumeId }: VolumeRecord): Promise<void> {
  // A provider that answers 404 for everything also does so for volumes that it has.
  if (providerVolumeId !== null && !(await isNotFoundTrusted(deps, providerId))) return;
  await transactOnVolume(deps.store, id, async (tx, { record }) => {
    if (record.status !== 'error' || record.deletedAt !== null) return;
    const deletedAt = await endBilling(deps, tx, 'volume', id, deps.clock.now());
    await writeVolume(tx, record, { deletedAt });
    deps.log.info(
      { ...logNames(record), provider: providerId },
      'the provider does not have a broken volume: it is not billed any more',
    );
  });
}
