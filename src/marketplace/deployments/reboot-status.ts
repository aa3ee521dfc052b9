import { ProviderError } from '../../client/orchestrator-client.ts';
import type { RestartStatus } from '../../contract/extensions.ts';
import type { Caller } from '../caller.ts';
import type { RebootStatus } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import { toTimestamp } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import type { Provider } from '../providers/provider.ts';
import type { Action, DeploymentRecord } from '../records/deployment-record.ts';
import { ownDeployment } from './access.ts';
import { endAction } from './begin-action.ts';
import { providerOf } from './provider-of.ts';
import { assertSupportsRestart } from './restart.ts';

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
    const told = await provider.client.restartStatus(providerInstanceId, region, { timeoutMs });
    if (action === null) return toRebootStatus(told, askedAt);
    if (told.restarting) return inFlight(action);
    await endAction(store, { ...record, action, providerInstanceId });
    return { restarting: false };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (action !== null) return inFlight(action);
    throw unknownStatus(provider, error);
  }
}

/** Whether a restart that was begun here may be over at `now`: from then on the provider's word counts. */
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
