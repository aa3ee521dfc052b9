import type { Deployment } from '../contract/deployment.ts';
import { priceFor } from '../discounts/price.ts';
import { assertAffordable } from '../ledger/assert-affordable.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import { requireProvider } from '../providers/provider.ts';
import { ask, assertStatus, awaitDeployment, type LifecycleDeps } from './intents.ts';
import { minimumRuntimeMinutes } from './minimum-runtime.ts';
import { showDeployment } from './to-deployment.ts';

/**
 * M: POST .../resume: "A failed start … leaves the instance and disk unchanged and stopped" (M: States, rule 5).
 * @throws {ApiError} PROVIDER_SLOW: it may have succeeded, and a poll will show it; any other: nothing changed
 */
export async function resumeDeployment(deps: LifecycleDeps, caller: Caller, id: string): Promise<Deployment> {
  const { store, options, providers } = deps;
  // The user is read before the transaction, because billing mails lock the team first and then its users.
  const known = await ownDeployment(store.read, caller, id);
  const minimumMinutes = await minimumRuntimeMinutes(store.read, options, known);
  const asked = await ask(deps, caller, id, 'resume', async (record, tx) => {
    requireProvider(providers, record);
    assertStatus(record, 'stopped', 'started');
    await assertCanRun(deps, tx, record, minimumMinutes);
  });
  return showDeployment(deps, await awaitDeployment(deps, asked, ({ status }) => status === 'running'));
}

/** Locks the team, after the deployment. @throws {ApiError} VALIDATION_ERROR (insufficient_balance) */
async function assertCanRun(
  deps: LifecycleDeps,
  tx: Transaction,
  { id, teamId, originalRateMicroUsd }: DeploymentRecord,
  minimumMinutes: number,
): Promise<void> {
  const now = deps.clock.now();
  const { rateMicroUsd } = await priceFor(tx, teamId, originalRateMicroUsd, now);
  const commitment = { teamId, rateMicroUsd, insteadOf: id, minimumRuntimeMinutes: minimumMinutes };
  await assertAffordable(deps, tx, commitment, now);
}
