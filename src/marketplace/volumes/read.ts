import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Caller } from '../caller.ts';
import type { Volume } from '../contract/volume.ts';
import { logNames } from '../records/volume-record.ts';
import { ownVolume } from './access.ts';
import { observeVolume } from './advance.ts';
import type { VolumeDeps } from './deps.ts';
import { followVolume } from './follow.ts';
import { seeVolume } from './look.ts';
import { sellerOf } from './seller.ts';
import { showVolume } from './show.ts';

/**
 * M: GET /api/volumes/{volumeId}: "Volume with fresh usage data": the provider is asked, and where it does not answer
 * what is known is shown.
 *
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function readVolume(deps: VolumeDeps, caller: Caller, volumeId: string): Promise<Volume> {
  const { id } = await ownVolume(deps.store.read, caller, volumeId);
  await refresh(deps, id);
  return showVolume(deps, volumeId);
}

async function refresh(deps: VolumeDeps, id: string): Promise<void> {
  const seen = await seeVolume(deps.store.read, id);
  if (seen === null) return;
  const { status, providerId } = seen.record;
  const seller = sellerOf(deps.providers, providerId);
  if (seller === null || status === 'deleted' || status === 'deleting' || status === 'error') return;
  try {
    const observation = await observeVolume(deps, seller, seen);
    if (observation !== null) await followVolume(deps, seller, seen, observation);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    deps.log.debug(
      { ...logNames(seen.record), provider: providerId, problem: error.problem },
      'a volume is shown as it is known',
    );
  }
}
