import { ProviderError } from '../../client/orchestrator-client.ts';

/** Why a provider gives no more, as `details.reason` and `failureReason` tell it. */
export type Shortage = 'out_of_stock' | 'quota_exceeded';

/**
 * Whether a provider refused because it has nothing left, or because this marketplace may have no more there; undefined:
 * for another reason. The two are never taken for each other: a quota says nothing of the stock.
 */
export function shortageOf(error: unknown): Shortage | undefined {
  if (!(error instanceof ProviderError) || error.problem !== 'conflict') return undefined;
  if (error.code === 'capacity_unavailable') return 'out_of_stock';
  return error.code === 'quota_exceeded' ? 'quota_exceeded' : undefined;
}
