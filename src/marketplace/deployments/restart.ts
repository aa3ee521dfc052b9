import type { Deployment, RebootStatus } from '../contract/deployment.ts';
import { toTimestamp } from '../contract/values.ts';
import type { DeploymentIntent, DeploymentRecord } from '../model/deployment-record.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import { whenWritten } from '../model/waiting.ts';
import { restartUnsupportedReason } from '../providers/capabilities.ts';
import { requireProvider } from '../providers/provider.ts';
import { ask, assertStatus, assertSupported, awaitDeployment, type LifecycleDeps } from './intents.ts';
import { showDeployment } from './to-deployment.ts';

/**
 * M: POST .../restart: "never emulated by stop plus start". The restart is in flight until the provider reports the
 * end.
 * @throws {ApiError} PROVIDER_SLOW: it may have succeeded; any other: nothing changed
 */
export async function restartDeployment(
  deps: LifecycleDeps,
  caller: Caller,
  id: string,
): Promise<Deployment> {
  const asked = await ask(deps, caller, id, 'restart', (record) => {
    assertSupported(restartUnsupportedReason(requireProvider(deps.providers, record), record));
    assertStatus(record, 'running', 'restarted');
  });
  const isAccepted = ({ status, action }: DeploymentRecord) =>
    status === 'running' && action?.id === asked.action.id && action.answer === 'accepted';
  return showDeployment(deps, await awaitDeployment(deps, asked, isAccepted));
}

/** For this long after the call, the provider may not show the restart yet. */
const RESTART_SHOWS_MS = 5_000;
/** How long a read waits for the worker to poll the provider. */
const FRESH_WITHIN_MS = 2_000;

/**
 * M: GET .../reboot-status. A restart is in flight until the worker has observed its end.
 * @throws {ApiError} NOT_FOUND, FORBIDDEN or ACTION_UNSUPPORTED
 */
export async function readRebootStatus(
  deps: LifecycleDeps,
  caller: Caller,
  id: string,
): Promise<RebootStatus> {
  const { store, clock, options, providers } = deps;
  const record = await ownDeployment(store.read, caller, id);
  assertSupported(restartUnsupportedReason(requireProvider(providers, record), record));
  const now = clock.now();
  const isInFlight = ({ action }: DeploymentRecord) =>
    action?.kind === 'restart' && now - action.since < options.polling.actionMs;
  if (!isInFlight(record) || record.action === null) return { restarting: false };
  const { since } = record.action;
  if (!mayBeOver(record.action, now)) return { restarting: true, since: toTimestamp(since) };
  await store.transact((tx) => tx.signals.wake(record.providerId, id));
  const isOver = await whenWritten(deps, id, now + FRESH_WITHIN_MS, async () => {
    const seen = await store.read.deployments.byId(id);
    if (seen === null || !isInFlight(seen)) return true;
    return (seen.action?.checkedAt ?? 0) >= now ? false : null;
  });
  return isOver === true ? { restarting: false } : { restarting: true, since: toTimestamp(since) };
}

/** Whether a restart may be over at `now`. Before that, the provider's answer about it is not used. */
export function mayBeOver({ sentAt }: DeploymentIntent, now: number): boolean {
  return sentAt !== null && now - sentAt >= RESTART_SHOWS_MS;
}
