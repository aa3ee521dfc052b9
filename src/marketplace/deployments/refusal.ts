import { ProviderError } from '../../client/orchestrator-client.ts';
import { ApiError } from '../contract/errors.ts';
import type { Store } from '../ports/store.ts';
import type { Action } from '../records/deployment-record.ts';
import { type BegunDeployment, endAction } from './begin-action.ts';

const verbs: Readonly<Record<Exclude<Action['kind'], 'volume'>, string>> = {
  pause: 'stop',
  resume: 'start',
  restart: 'restart',
};

/**
 * Ends a change that the provider did not take, so that the deployment is as it was before, and returns what to throw:
 * 503 for any 409 of a start, 409 where the provider is busy with another change, 502 for the rest. What the provider
 * said goes to the log alone.
 */
export async function refusal(store: Store, begun: BegunDeployment, error: unknown): Promise<unknown> {
  await endAction(store, begun);
  if (!(error instanceof ProviderError)) return error;
  const { action, providerId } = begun;
  const options = { cause: error };
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
  const verb = action.kind === 'volume' ? 'change' : verbs[action.kind];
  return new ApiError(
    'PROVIDER_REFUSED',
    `${providerId} ${reasonOf(error)} the ${verb}; nothing changed.`,
    options,
  );
}

/** M: 504, "The request went through: poll the deployment". */
export function providerSlow({ providerId }: BegunDeployment): ApiError {
  return new ApiError(
    'PROVIDER_SLOW',
    `${providerId} has taken the request and is slow; poll the deployment rather than trying again.`,
  );
}

function reasonOf({ problem }: ProviderError): string {
  return problem === 'unreachable' ? 'was not reached for' : 'refused';
}
