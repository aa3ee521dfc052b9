import { orProviderError, ProviderError } from '../../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import { logNames, type VolumeRecord } from '../../model/volume-record.ts';
import type { Provider } from '../../providers/provider.ts';
import { isInTransit, type VolumeSnapshot } from '../../volumes/snapshot.ts';
import { applyVolumeObservation } from './apply-observation.ts';
import { getVolume, type Shown, type VolumeContext } from './step.ts';

/**
 * Reads the volume from its provider. A 404 is logged once and gives null. The record is then kept, since O: has no
 * list to confirm the loss.
 * @throws {ProviderError}
 */
export async function getKnownVolume(
  context: VolumeContext,
  record: VolumeRecord,
): Promise<ProviderVolume | null> {
  const { provider, log } = context;
  const { volumeId, providerVolumeId } = record;
  if (providerVolumeId === null) return null;
  const volume = await getVolume(context, providerVolumeId);
  if (volume !== null) {
    unknown.get(provider)?.delete(volumeId);
    return volume;
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

/** The deployments whose instances are being restarted for the volume (M: Volume rules, 7). */
async function findBusy(
  { provider, volumeProvider: { profile }, call }: VolumeContext,
  { attachments }: VolumeSnapshot,
): Promise<ReadonlySet<string>> {
  const busy = new Set<string>();
  if (!profile.attach.supported || !profile.attach.restarts_instance) return busy;
  for (const { deployment } of attachments.filter(isInTransit)) {
    const { id, providerInstanceId, region, status } = deployment;
    if (status !== 'running' || providerInstanceId === null) continue;
    const shown = await orProviderError(provider.client.getInstance(providerInstanceId, region, call));
    if (shown instanceof ProviderError || shown.status !== 'ONLINE') busy.add(id);
  }
  return busy;
}

/** Applies what the provider showed at `begunAt`. */
export async function observe(
  context: VolumeContext,
  { snapshot, volume, isAccepted = false }: Shown,
  begunAt: number,
): Promise<void> {
  const observation = { volume, isAccepted, busy: await findBusy(context, snapshot) };
  await applyVolumeObservation(context, snapshot, observation, begunAt);
}
