import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Caller } from '../caller.ts';
import type { Deployment } from '../contract/deployment.ts';
import type { Provider } from '../providers/provider.ts';
import type { ApplyDeps } from './apply-observation.ts';
import { assertStatus } from './assert-status.ts';
import { awaitStatus, look } from './await-status.ts';
import { type BegunDeployment, beginAction } from './begin-action.ts';
import { assertSupportsPause, stoppedPriceOf } from './pause-quote.ts';
import { providerOf } from './provider-of.ts';
import { refusal } from './refusal.ts';
import { showDeployment } from './to-deployment.ts';

/**
 * M: POST .../pause: running → stopped, "GPU released, disk kept, billing at `stoppedHourlyRate`". The provider is asked
 * once, and looked at until it shows.
 *
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, ACTION_UNSUPPORTED, INVALID_STATUS, CHANGE_IN_PROGRESS or PROVIDER_REFUSED:
 *   then nothing changed; PROVIDER_SLOW: it went through, or may have, and a poll will show it
 */
export async function pauseDeployment(deps: ApplyDeps, caller: Caller, id: string): Promise<Deployment> {
  const { store, clock, options, providers } = deps;
  const deadline = clock.now() + options.lifecycleWaitMs;
  const begun = await beginAction(deps, caller, id, { kind: 'pause', isSent: true }, (record) => {
    const provider = providerOf(providers, record);
    assertSupportsPause(provider, record);
    assertStatus(record, 'running', 'stopped');
    stoppedPriceOf(providers, record);
  });
  const provider = providerOf(providers, begun);
  const { callTimeoutMs: timeoutMs } = options.polling;
  let problem: ProviderError | null = null;
  try {
    await provider.client.stopInstance(begun.providerInstanceId, begun.region, { timeoutMs });
  } catch (error) {
    if (!(await mayBeStopping(provider, begun, error, timeoutMs))) throw await refusal(store, begun, error);
    if (error instanceof ProviderError && error.mayHaveHappened) problem = error;
  }
  const stopped = await awaitStatus(deps, provider, begun, { wanted: 'stopped', deadline, problem });
  return showDeployment({ store, clock, providers }, stopped);
}

/**
 * A stop without an answer "usually means it was accepted" (M: Deployments, rule 3). Where there was one that does not
 * settle it, the instance itself tells.
 */
async function mayBeStopping(
  provider: Provider,
  begun: BegunDeployment,
  error: unknown,
  timeoutMs: number,
): Promise<boolean> {
  if (!(error instanceof ProviderError)) return false;
  const { problem, mayHaveHappened } = error;
  if (mayHaveHappened && problem !== 'failed') return true;
  if (!mayHaveHappened && problem !== 'conflict') return false;
  const instance = await look(provider, begun, timeoutMs);
  if (instance === null) return mayHaveHappened;
  return instance.status === 'STOPPING' || instance.status === 'STOPPED';
}
