import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Instance } from '../../contract/instance.ts';
import type { Clock } from '../../ports/clock.ts';
import { ApiError } from '../contract/errors.ts';
import type { Store } from '../ports/store.ts';
import type { Provider } from '../providers/provider.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import { type ApplyDeps, applyObservation } from './apply-observation.ts';
import { type BegunDeployment, isUnderWay } from './begin-action.ts';
import { providerSlow } from './refusal.ts';

const LOOK_EVERY_MS = 2_000;

/**
 * Looks at the provider until a change has shown. Each look is applied as a poll would apply it, so that who looks
 * makes no difference. `problem`: what came in place of an answer to the request; null: the provider accepted it.
 *
 * @throws {ApiError} PROVIDER_SLOW at the deadline: the change is still awaited, and a later poll ends it.
 *   INVALID_STATUS where the deployment became something else meanwhile, PROVIDER_REFUSED where the change was given up.
 */
export async function awaitStatus(
  deps: ApplyDeps,
  provider: Provider,
  begun: BegunDeployment,
  { wanted, deadline, problem }: { wanted: 'running' | 'stopped'; deadline: number; problem: unknown },
): Promise<DeploymentRecord> {
  const { store, clock, options } = deps;
  for (;;) {
    const record = await readBegun(store, begun);
    if (record.status === wanted) return record;
    if (!isUnderWay(record, begun)) throw givenUp(record, begun);
    const begunAt = clock.now();
    const left = deadline - begunAt;
    if (left <= 0) throw providerSlow(begun, problem);
    const instance = await look(provider, begun, Math.min(left, options.polling.callTimeoutMs));
    if (instance !== null) await applyObservation(deps, record, { instance }, begunAt);
    const seen = await readBegun(store, begun);
    if (seen.status === wanted) return seen;
    await pass(clock, Math.min(LOOK_EVERY_MS, Math.max(0, deadline - clock.now())));
  }
}

/** The instance as the provider tells it; null where it does not. */
export async function look(
  { client }: Provider,
  { providerInstanceId, region }: BegunDeployment,
  timeoutMs: number,
): Promise<Instance | null> {
  try {
    return await client.getInstance(providerInstanceId, region, { timeoutMs });
  } catch (error) {
    if (error instanceof ProviderError) return null;
    throw error;
  }
}

async function readBegun({ read }: Store, { id }: BegunDeployment): Promise<DeploymentRecord> {
  const record = await read.deployments.byId(id);
  if (record === null) throw new Error(`${id} is not there any more`);
  return record;
}

function givenUp({ status, providerId }: DeploymentRecord, begun: BegunDeployment): ApiError {
  if (status !== begun.status)
    return new ApiError('INVALID_STATUS', `The deployment became ${status} meanwhile.`, {
      details: { status },
    });
  return new ApiError('PROVIDER_REFUSED', `${providerId} did not do it; nothing changed.`);
}

function pass(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(ms, resolve));
}
