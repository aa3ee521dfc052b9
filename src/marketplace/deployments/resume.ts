import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Deployment } from '../contract/deployment.ts';
import { priceFor } from '../discounts/price.ts';
import { assertAffordable } from '../ledger/assert-affordable.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import { assertStatus, beginAction } from './actions.ts';
import type { ApplyDeps } from './apply-observation.ts';
import { awaitStatus, providerOf, refusal } from './refusal.ts';
import { minimumRuntimeMinutes } from './terminate.ts';
import { showDeployment } from './to-deployment.ts';

/**
 * M: POST .../resume: stopped → running, "Same disk, contents and public IP". "A failed start … leaves the instance and
 * disk unchanged and stopped" (M: States, rule 5).
 *
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, VALIDATION_ERROR (insufficient_balance), INVALID_STATUS, CHANGE_IN_PROGRESS,
 *   OUT_OF_STOCK or PROVIDER_REFUSED: then nothing changed; PROVIDER_SLOW: it went through, or
 *   may have, and a poll will show it
 */
export async function resumeDeployment(deps: ApplyDeps, caller: Caller, id: string): Promise<Deployment> {
  const { store, clock, options, providers } = deps;
  const deadline = clock.now() + options.lifecycleWaitMs;
  // Read before the transaction: who mails of a team's money locks the team and then its users.
  const minimumMinutes = await minimumRuntimeMinutes(
    store.read,
    options,
    await ownDeployment(store.read, caller, id),
  );
  const begun = await beginAction(deps, caller, id, { kind: 'resume', isSent: true }, async (record, tx) => {
    providerOf(providers, record);
    assertStatus(record, 'stopped', 'started');
    await assertCanRun(deps, tx, record, minimumMinutes);
  });
  const provider = providerOf(providers, begun);
  const { callTimeoutMs: timeoutMs } = options.polling;
  let problem: ProviderError | null = null;
  try {
    await provider.client.startInstance(begun.providerInstanceId, begun.region, { timeoutMs });
  } catch (error) {
    if (!(error instanceof ProviderError && error.mayHaveHappened)) throw await refusal(store, begun, error);
    problem = error;
  }
  const running = await awaitStatus(deps, provider, begun, { wanted: 'running', deadline, problem });
  return showDeployment({ store, clock, providers }, running);
}

/** Locks the team, after the deployment. @throws {ApiError} VALIDATION_ERROR (insufficient_balance) */
async function assertCanRun(
  deps: ApplyDeps,
  tx: Transaction,
  { id, teamId, originalRateMicroUsd }: DeploymentRecord,
  minimumMinutes: number,
): Promise<void> {
  const now = deps.clock.now();
  const { rateMicroUsd } = await priceFor(tx, teamId, originalRateMicroUsd, now);
  const commitment = { teamId, rateMicroUsd, insteadOf: id, minimumRuntimeMinutes: minimumMinutes };
  await assertAffordable(deps, tx, commitment, now);
}
