import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Caller } from '../caller.ts';
import type { Deployment } from '../contract/deployment.ts';
import { assertCanSpend } from '../ledger/balance.ts';
import type { ApplyDeps } from './apply-observation.ts';
import { assertStatus } from './assert-status.ts';
import { awaitStatus } from './await-status.ts';
import { beginAction } from './begin-action.ts';
import { providerOf } from './provider-of.ts';
import { refusal } from './refusal.ts';
import { toSingleDeployment } from './to-deployment.ts';

/**
 * M: POST .../resume: stopped → running, "Same disk, contents and public IP". "A failed start … leaves the instance and
 * disk unchanged and stopped" (M: States, rule 5).
 *
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, VALIDATION_ERROR (insufficient_balance), INVALID_STATUS, CHANGE_IN_PROGRESS,
 *   OUT_OF_STOCK or PROVIDER_REFUSED: then nothing changed; PROVIDER_SLOW: it went through, and a poll will show it
 */
export async function resumeDeployment(deps: ApplyDeps, caller: Caller, id: string): Promise<Deployment> {
  const { store, clock, options, providers } = deps;
  const deadline = clock.now() + options.lifecycleWaitMs;
  const begun = await beginAction(deps, caller, id, { kind: 'resume', isSent: true }, async (record, tx) => {
    providerOf(providers, record);
    assertStatus(record, 'stopped', 'started');
    await assertCanSpend(tx, record.teamId, clock.now());
  });
  const provider = providerOf(providers, begun);
  const { callTimeoutMs: timeoutMs } = options.polling;
  try {
    await provider.client.startInstance(begun.providerInstanceId, begun.region, { timeoutMs });
  } catch (error) {
    if (!(error instanceof ProviderError && error.mayHaveHappened)) throw await refusal(store, begun, error);
  }
  const running = await awaitStatus(deps, provider, begun, 'running', deadline);
  return toSingleDeployment(running, providers, clock.now());
}
