import { orProviderError, ProviderError } from '../../client/orchestrator-client.ts';
import type { FailureReason } from '../contract/deployment.ts';
import { mayBeOver } from '../deployments/lifecycle.ts';
import type { Observation } from '../deployments/observe.ts';
import { transition } from '../deployments/transition.ts';
import { type DeploymentIntent, type DeploymentRecord, logNames } from '../model/deployment-record.ts';
import { isAwaited, isUnsent } from '../model/intent.ts';
import type { SyncContext } from './context.ts';

/** O: Integration is poll-based. A machine that is ONLINE after this time was not stopped. */
const PAUSE_SHOWS_MS = 60_000;

/** Ends a sent intent of a deployment that is done or has timed out. */
export async function settleAction(
  context: SyncContext,
  record: DeploymentRecord,
  observation: Observation,
): Promise<void> {
  const { clock, options, log } = context;
  const { action } = record;
  if (action === null || isUnsent(action)) return;
  const ageMs = clock.now() - (action.sentAt ?? action.since);
  const timeoutMs = isPauseUnseen(observation, action.kind) ? PAUSE_SHOWS_MS : options.polling.actionMs;
  // An intent that a request still waits for is kept, so that the request can read the outcome.
  const isAwaitedStill = isAwaited(action, clock.now());
  const isTooOld = ageMs >= timeoutMs && !isAwaitedStill;
  const isRestarting = isTooOld ? false : await askForRestart(context, record);
  if (!isTooOld && isRestarting === null) return;
  if (isTooOld)
    log.warn(
      { ...logNames(record), provider: record.providerId, action: action.kind, answer: action.answer, ageMs },
      action.kind === 'resume' && action.answer === 'accepted'
        ? 'the provider accepted a start, and the machine does not run: it stays stopped and can be started again; ask the provider whether it has room'
        : 'the provider did not show a change in time: it is given up',
    );
  const checkedAt = clock.now();
  await context.store.transact(async (tx) => {
    const latest = await tx.deployments.byId(record.id);
    if (latest === null || latest.action?.id !== action.id) return;
    const { answer } = latest.action;
    const isUnclear = isAwaitedStill && answer !== 'accepted';
    const seen = { ...latest.action, checkedAt, answer: isRestarting ? ('accepted' as const) : answer };
    await tx.deployments.update({ ...latest, action: isRestarting || isUnclear ? seen : null });
  });
}

function isPauseUnseen(observation: Observation, kind: DeploymentIntent['kind']): boolean {
  return kind === 'pause' && 'instance' in observation && observation.instance.status === 'ONLINE';
}

/** Whether a restart is in progress; null: unknown, or there is no restart. */
async function askForRestart(
  { clock, provider, health, call }: SyncContext,
  record: DeploymentRecord,
): Promise<boolean | null> {
  const { action, region, offerId, providerInstanceId } = record;
  if (action?.kind !== 'restart' || providerInstanceId === null) return null;
  if (!mayBeOver(action, clock.now())) return null;
  if (provider.catalog.offers.get(offerId)?.announcesRestart !== true) return null;
  const answer = await orProviderError(provider.client.restartStatus(providerInstanceId, region, call));
  if (!(answer instanceof ProviderError)) return answer.restarting;
  health.failed(record, answer);
  return null;
}

/** Fails the deployment, unless it has changed since the decision. An instance that may exist is cleaned up. */
export async function fail(
  context: SyncContext,
  decidedOn: DeploymentRecord,
  failureReason: FailureReason,
  failureDetails: string,
): Promise<void> {
  const { store, clock, log } = context;
  const hasFailed = await store.transact(async (tx) => {
    const record = await tx.deployments.byId(decidedOn.id);
    if (record === null || record.status !== 'deploying' || record.launch.state !== decidedOn.launch.state)
      return false;
    const fields = { failureReason, failureDetails };
    await transition(context, tx, record, { to: 'failed', at: clock.now(), fields });
    return true;
  });
  if (hasFailed)
    log.warn(
      { ...logNames(decidedOn), provider: decidedOn.providerId, failureReason, failureDetails },
      'a deployment failed',
    );
}
