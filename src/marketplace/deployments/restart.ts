import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Caller } from '../caller.ts';
import type { Deployment } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { restartUnsupportedReason } from '../providers/capabilities.ts';
import type { Provider } from '../providers/provider.ts';
import { assertStatus } from './assert-status.ts';
import { type BegunDeployment, beginAction, markSent } from './begin-action.ts';
import { providerOf } from './provider-of.ts';
import { providerSlow, refusal } from './refusal.ts';
import { showDeployment } from './to-deployment.ts';

/**
 * M: POST .../restart: "hard reboot, memory lost, billing and status unchanged"; "never emulated by stop plus start". It
 * is in flight until the provider says that it is over.
 *
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, ACTION_UNSUPPORTED, INVALID_STATUS, CHANGE_IN_PROGRESS or PROVIDER_REFUSED:
 *   then nothing changed; PROVIDER_SLOW: it may have gone through
 */
export async function restartDeployment(
  { store, clock, options, providers }: Pick<Deps, 'store' | 'clock' | 'options' | 'providers'>,
  caller: Caller,
  id: string,
): Promise<Deployment> {
  const wanted = { kind: 'restart', isSent: false } as const;
  const begun = await beginAction({ store, clock, options }, caller, id, wanted, (record) => {
    assertSupportsRestart(providerOf(providers, record), record);
    assertStatus(record, 'running', 'restarted');
  });
  const provider = providerOf(providers, begun);
  const { callTimeoutMs: timeoutMs } = options.polling;
  let outcome: 'taken' | 'refused' | 'unknown' = 'taken';
  let cause: unknown;
  try {
    await provider.client.restartInstance(begun.providerInstanceId, begun.region, { timeoutMs });
  } catch (error) {
    outcome = await outcomeOf(provider, begun, error, timeoutMs);
    cause = error;
  }
  if (outcome === 'refused') throw await refusal(store, begun, cause);
  const sent = await markSent(store, begun);
  if (outcome === 'unknown') throw providerSlow(begun, cause);
  return showDeployment({ store, clock, providers }, sent);
}

/** @throws {ApiError} ACTION_UNSUPPORTED, which names the limit */
export function assertSupportsRestart(
  provider: Provider,
  record: Parameters<typeof restartUnsupportedReason>[1],
): void {
  const reason = restartUnsupportedReason(provider, record);
  if (reason !== null) throw new ApiError('ACTION_UNSUPPORTED', reason);
}

/** What an answer that is none leaves open is asked of the provider. */
async function outcomeOf(
  { client }: Provider,
  { providerInstanceId, region }: BegunDeployment,
  error: unknown,
  timeoutMs: number,
): Promise<'taken' | 'refused' | 'unknown'> {
  if (!(error instanceof ProviderError) || !error.mayHaveHappened) return 'refused';
  try {
    const { restarting } = await client.restartStatus(providerInstanceId, region, { timeoutMs });
    if (restarting) return 'taken';
    return error.problem === 'failed' ? 'refused' : 'unknown';
  } catch (problem) {
    if (problem instanceof ProviderError) return 'unknown';
    throw problem;
  }
}
