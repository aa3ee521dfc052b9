import { ProviderError } from '../../../client/orchestrator-client.ts';
import type { VolumeSnapshot } from '../../volumes/snapshot.ts';
import { beginAttempt, type Shown, settleError, type VolumeContext } from './step.ts';

/** Sends a resize once. Returns the volume as the provider then shows it. @throws {ProviderError} */
export async function sendResize(context: VolumeContext, snapshot: VolumeSnapshot): Promise<Shown | null> {
  const { providerVolumeId, action } = snapshot.record;
  const sent = await beginAttempt(context, snapshot);
  if (sent === null || providerVolumeId === null) return null;
  try {
    const { client } = context.provider;
    const volume = await client.resizeVolume(providerVolumeId, action?.toSizeGb ?? 0, context.call);
    return { snapshot: sent, volume, isAccepted: true };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    await settleError(context, sent, error);
    return null;
  }
}
