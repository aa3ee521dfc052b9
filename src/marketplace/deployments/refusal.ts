import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Instance } from '../../contract/instance.ts';
import type { Clock } from '../../ports/clock.ts';
import { ApiError } from '../contract/errors.ts';
import type { Action, DeploymentRecord } from '../model/deployment-record.ts';
import type { Store } from '../model/store.ts';
import { describeSlow, shortageOf } from '../providers/capabilities.ts';
import type { Provider, Providers } from '../providers/provider.ts';
import { type BegunDeployment, endAction, isUnderWay } from './actions.ts';
import { type ApplyDeps, applyObservation } from './apply-observation.ts';

const verbs: Readonly<Record<Exclude<Action['kind'], 'volume'>, string>> = {
  pause: 'stop',
  resume: 'start',
  restart: 'restart',
};

/**
 * Ends a change that the provider refused and returns the error to throw: 400 if our quota is used up, 503 for any
 * other 409 of a start, 409 if the provider is busy with another change, 502 otherwise. The provider's own text goes
 * to the log only.
 */
export async function refusal(store: Store, begun: BegunDeployment, error: unknown): Promise<unknown> {
  await endAction(store, begun);
  if (!(error instanceof ProviderError)) return error;
  const { action, providerId } = begun;
  const options = { cause: error };
  if (shortageOf(error) === 'quota_exceeded')
    return new ApiError(
      'VALIDATION_ERROR',
      `${providerId} gives this marketplace no more machines for now; the instance and its data are intact.`,
      { cause: error, details: { reason: 'quota_exceeded' } },
    );
  if (action.kind === 'resume' && error.problem === 'conflict')
    return new ApiError(
      'OUT_OF_STOCK',
      `${providerId} has no machine of this type free now; the instance and its data are intact. Try again later.`,
      options,
    );
  if (error.problem === 'conflict' && error.code === 'operation_in_progress')
    return new ApiError(
      'CHANGE_IN_PROGRESS',
      `${providerId} is still busy with another change of this instance; wait a few minutes and try again.`,
      options,
    );
  return new ApiError(
    'PROVIDER_REFUSED',
    `${providerId} ${reasonOf(error)} the ${verbOf(action)}; nothing changed.`,
    options,
  );
}

/** M: 504. `problem`: what came in place of the provider's answer; null: it accepted the change. */
export function providerSlow({ providerId, action }: BegunDeployment, problem: unknown): ApiError {
  const what = verbOf(action);
  return new ApiError('PROVIDER_SLOW', describeSlow({ providerId, what, thing: 'deployment' }, problem), {
    cause: problem ?? undefined,
  });
}

function verbOf({ kind }: Action): string {
  return kind === 'volume' ? 'change' : verbs[kind];
}

function reasonOf({ problem }: ProviderError): string {
  return problem === 'unreachable' ? 'was not reached for' : 'refused';
}

/**
 * Where a deployment is.
 *
 * @throws {ApiError} PROVIDER_REFUSED where the configuration does not have the provider any more
 */
export function providerOf(providers: Providers, { providerId }: DeploymentRecord): Provider {
  const provider = providers.get(providerId);
  if (provider !== undefined) return provider;
  throw new ApiError('PROVIDER_REFUSED', `${providerId} cannot be reached from here; nothing changed.`);
}

/**
 * When a terminate that is accepted at `now` counts from. If the provider is no longer configured, it counts from the
 * last observation: nothing after that is billed.
 */
export function endsAt(providers: Providers, record: DeploymentRecord, now: number): number {
  if (providers.get(record.providerId) !== undefined) return now;
  return record.observedAt ?? now;
}

const POLL_EVERY_MS = 2_000;

/**
 * Polls the provider until the deployment has the wanted status. Each observation is applied as the worker's polls
 * are. `problem`: the error that the provider's call ended with; null: it was accepted.
 *
 * @throws {ApiError} PROVIDER_SLOW at the deadline: the change is still awaited, and a later poll ends it.
 *   INVALID_STATUS where the deployment became something else meanwhile, PROVIDER_REFUSED where the change was given
 *   up.
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
    const instance = await getInstance(provider, begun, Math.min(left, options.polling.callTimeoutMs));
    if (instance !== null) await applyObservation(deps, record, { instance }, begunAt);
    const seen = await readBegun(store, begun);
    if (seen.status === wanted) return seen;
    await pass(clock, Math.min(POLL_EVERY_MS, Math.max(0, deadline - clock.now())));
  }
}

/** The instance as the provider shows it; null if the call fails. */
export async function getInstance(
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
