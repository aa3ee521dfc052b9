import { orProviderError, ProviderError } from '../../../client/orchestrator-client.ts';
import { reportsVolumeUsage } from '../../providers/capabilities.ts';
import type { SyncContext } from '../context.ts';

/** How often a provider is asked how much of its volumes is used. */
export const USAGE_MS = 5 * 60_000;
const WRITTEN_AT_ONCE = 200;

/**
 * Records how much of its volumes a provider reports to be used, with one request for all of them. Returns the pause
 * until the next request.
 */
export async function readVolumeUsage({ store, provider, clock, call, log }: SyncContext): Promise<number> {
  if (!reportsVolumeUsage(provider) || (await store.read.volumes.toSync(provider.id)).length === 0)
    return USAGE_MS;
  const askedAt = clock.now();
  const answer = await orProviderError(provider.client.listVolumeUsage(call));
  if (answer instanceof ProviderError) {
    const { problem, message } = answer;
    log.debug({ provider: provider.id, problem, message }, 'the use of volumes could not be read');
    return USAGE_MS;
  }
  // A provider's clock may be ahead.
  const all = answer.map(({ id, used_bytes: usedBytes, measured_at: at }) => {
    const measuredAt = Math.min(askedAt, Date.parse(at));
    return [id, { usedBytes, measuredAt }] as const;
  });
  for (let from = 0; from < all.length; from += WRITTEN_AT_ONCE) {
    const part = new Map(all.slice(from, from + WRITTEN_AT_ONCE));
    await store.transact((tx) => tx.volumes.recordUsage(provider.id, part));
  }
  return USAGE_MS;
}
