import { ProviderError } from '../../client/orchestrator-client.ts';
import type { RestartStatus } from '../../contract/extensions.ts';
import type { Caller } from '../caller.ts';
import type { RebootStatus } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import { toTimestamp } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import type { Provider } from '../providers/provider.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import { ownDeployment } from './access.ts';
import { providerOf } from './provider-of.ts';
import { assertSupportsRestart } from './restart.ts';

/**
 * M: GET .../reboot-status, as the provider tells it; what is not running does not reboot. Where the provider does not
 * tell, a restart that was begun here is still in flight by all that is known.
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
  if (record.status !== 'running' || record.providerInstanceId === null) return { restarting: false };
  const begunAt = ownRestartSince(record, clock.now(), options);
  try {
    const { callTimeoutMs: timeoutMs } = options.polling;
    const status = await provider.client.restartStatus(record.providerInstanceId, record.region, {
      timeoutMs,
    });
    return toRebootStatus(status, begunAt ?? clock.now());
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (begunAt !== null) return { restarting: true, since: toTimestamp(begunAt) };
    throw unknownStatus(provider, error);
  }
}

function toRebootStatus({ restarting, since }: RestartStatus, otherwise: number): RebootStatus {
  if (!restarting) return { restarting };
  return { restarting, since: toTimestamp(since === undefined ? otherwise : Date.parse(since)) };
}

function ownRestartSince(
  { action }: DeploymentRecord,
  now: number,
  { polling }: Deps['options'],
): number | null {
  return action?.kind === 'restart' && now - action.since < polling.actionMs ? action.since : null;
}

function unknownStatus({ id }: Provider, cause: ProviderError): ApiError {
  return new ApiError('PROVIDER_REFUSED', `${id} does not tell now whether the instance is restarting.`, {
    cause,
  });
}
