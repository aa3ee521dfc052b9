import { endBilling } from '../../ledger/segments.ts';
import { logNames, type VolumeRecord } from '../../model/volume-record.ts';
import { isNotFoundTrusted } from '../../providers/loss-cap.ts';
import type { Provider } from '../../providers/provider.ts';
import { transactOnVolume, type VolumeSnapshot, writeVolume } from '../../volumes/snapshot.ts';
import { getVolume, type Shown, type VolumeContext } from './step.ts';

/**
 * Reads the volume from its provider. A 404 is logged once and gives null. The record is then kept, since O: has no
 * list to confirm the loss.
 * @throws {ProviderError}
 */
export async function getKnownVolume(
  context: VolumeContext,
  snapshot: VolumeSnapshot,
): Promise<Shown | null> {
  const { provider, log } = context;
  const { record } = snapshot;
  const { volumeId, providerVolumeId } = record;
  if (providerVolumeId === null) return null;
  const volume = await getVolume(context, providerVolumeId);
  if (volume !== null) {
    unknown.get(provider)?.delete(volumeId);
    return { snapshot, volume };
  }
  const logged = unknown.get(provider) ?? new Set();
  unknown.set(provider, logged);
  if (!logged.has(volumeId))
    log.error(
      { ...logNames(record), provider: provider.id, providerVolumeId },
      'the provider answers 404 for a volume of this marketplace: it is kept and billed; check it at the provider',
    );
  logged.add(volumeId);
  return null;
}

/** The volumes for which a provider's 404 was already logged. */
const unknown = new WeakMap<Provider, Set<string>>();

/**
 * Ends the bill of a volume in `error` once the provider answers 404. The volume keeps its status until its user
 * deletes it.
 * @throws {ProviderError}
 */
export async function endBillOfFailed(context: VolumeContext, record: VolumeRecord): Promise<void> {
  const { id, startedAt, deletedAt, providerId, providerVolumeId } = record;
  if (startedAt === null || deletedAt !== null) return;
  if (providerVolumeId !== null && (await getVolume(context, providerVolumeId)) !== null) return;
  // A provider that answers 404 for everything does so for existing volumes too.
  if (providerVolumeId !== null && !(await isNotFoundTrusted(context, providerId))) return;
  await transactOnVolume(context.store, id, async (tx, { record: current }) => {
    if (current.status !== 'error' || current.deletedAt !== null) return;
    const endedAt = await endBilling(context, tx, 'volume', id, context.clock.now());
    await writeVolume(tx, current, { deletedAt: endedAt });
  });
  context.log.info(
    { ...logNames(record), provider: providerId },
    'the provider no longer has a broken volume: its billing has ended',
  );
}
