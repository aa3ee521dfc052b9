import { ProviderError } from '../../client/orchestrator-client.ts';
import type { FailureReason } from '../contract/deployment.ts';
import type { Observation } from '../deployments/observe.ts';
import { mayBeOver } from '../deployments/restart.ts';
import { transition } from '../deployments/transition.ts';
import { type Action, type DeploymentRecord, logNames } from '../model/deployment-record.ts';
import type { SyncContext } from './context.ts';

/** A stop that a provider has taken shows within seconds (O: Integration is poll-based); ONLINE after this, it has not. */
const PAUSE_SHOWS_MS = 60_000;

/** Ends the action of a deployment that is over or has timed out. */
export async function settleAction(
  context: SyncContext,
  record: DeploymentRecord,
  observation: Observation,
): Promise<void> {
  const { clock, options, log } = context;
  const { action } = record;
  if (action === null) return;
  const ageMs = clock.now() - action.since;
  const timeoutMs = isPauseUnseen(observation, action.kind) ? PAUSE_SHOWS_MS : options.polling.actionMs;
  const isTooOld = ageMs >= timeoutMs;
  if (!isTooOld && !(await hasRestarted(context, record))) return;
  if (isTooOld)
    log.warn(
      { ...logNames(record), provider: record.providerId, action: action.kind, ageMs },
      'a change did not show at the provider in time: it is given up',
    );
  await context.store.transact(async (tx) => {
    const now = await tx.deployments.byId(record.id);
    if (now === null || now.action?.kind !== action.kind || now.action.since !== action.since) return;
    await tx.deployments.update({ ...now, action: null });
  });
}

function isPauseUnseen(observation: Observation, kind: Action['kind']): boolean {
  return kind === 'pause' && 'instance' in observation && observation.instance.status === 'ONLINE';
}

async function hasRestarted(
  { clock, provider, health, call }: SyncContext,
  record: DeploymentRecord,
): Promise<boolean> {
  const { action, region, offerId, providerInstanceId } = record;
  if (action?.kind !== 'restart' || providerInstanceId === null) return false;
  if (!mayBeOver(action, clock.now())) return false;
  if (provider.catalog.offers.get(offerId)?.announcesRestart !== true) return false;
  try {
    return !(await provider.client.restartStatus(providerInstanceId, region, call)).restarting;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    health.failed(record, error);
    return false;
  }
}

/** Fails the deployment, unless it has changed since that was decided. An instance that may exist is cleaned up. */
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
