import { ProviderError } from '../../client/orchestrator-client.ts';
import type { RestartStatus } from '../../contract/extensions.ts';
import type { Deployment, RebootStatus } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import { toTimestamp } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import type { Action, DeploymentRecord } from '../model/deployment-record.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import { restartUnsupportedReason } from '../providers/capabilities.ts';
import type { Provider } from '../providers/provider.ts';
import { assertStatus, type BegunDeployment, beginAction, endAction, markSent } from './actions.ts';
import { providerOf, providerSlow, refusal } from './refusal.ts';
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
function assertSupportsRestart(
  provider: Provider,
  record: Parameters<typeof restartUnsupportedReason>[1],
): void {
  const reason = restartUnsupportedReason(provider, record);
  if (reason !== null) throw new ApiError('ACTION_UNSUPPORTED', reason);
}

/** Without a clear answer, the provider is asked for the restart status. */
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

/** A restart that was taken just now may not show at the provider yet. */
const RESTART_SHOWS_MS = 5_000;

/**
 * M: GET .../reboot-status. A restart that was begun here is in flight until the provider says that it is over; that ends
 * the change too, so that nothing is refused for a restart that reads as over. What is not running does not reboot.
 *
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, ACTION_UNSUPPORTED, or PROVIDER_REFUSED where nothing is known
 */
export async function readRebootStatus(
  { store, clock, options, providers }: Pick<Deps, 'store' | 'clock' | 'options' | 'providers'>,
  caller: Caller,
  id: string,
): Promise<RebootStatus> {
  const record = await ownDeployment(store.read, caller, id);
  const provider = providerOf(providers, record);
  assertSupportsRestart(provider, record);
  const { status, providerInstanceId, region } = record;
  if (status !== 'running' || providerInstanceId === null) return { restarting: false };
  const askedAt = clock.now();
  const action = ownRestart(record, askedAt, options);
  if (action !== null && !mayBeOver(action, askedAt)) return inFlight(action);
  try {
    const { callTimeoutMs: timeoutMs } = options.polling;
    const reported = await provider.client.restartStatus(providerInstanceId, region, { timeoutMs });
    if (action === null) return toRebootStatus(reported, askedAt);
    if (reported.restarting) return inFlight(action);
    await endAction(store, { ...record, action, providerInstanceId });
    return { restarting: false };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (action !== null) return inFlight(action);
    throw unknownStatus(provider, error);
  }
}

/** Whether a restart that was begun here may be over at `now`: only then the provider's status is trusted. */
export function mayBeOver({ isSent, since }: Action, now: number): boolean {
  return isSent && now - since >= RESTART_SHOWS_MS;
}

function inFlight({ since }: Action): RebootStatus {
  return { restarting: true, since: toTimestamp(since) };
}

function toRebootStatus({ restarting, since }: RestartStatus, otherwise: number): RebootStatus {
  if (!restarting) return { restarting };
  return { restarting, since: toTimestamp(since === undefined ? otherwise : Date.parse(since)) };
}

function ownRestart({ action }: DeploymentRecord, now: number, { polling }: Deps['options']): Action | null {
  return action?.kind === 'restart' && now - action.since < polling.actionMs ? action : null;
}

function unknownStatus({ id }: Provider, cause: ProviderError): ApiError {
  return new ApiError('PROVIDER_REFUSED', `${id} does not tell now whether the instance is restarting.`, {
    cause,
  });
}
