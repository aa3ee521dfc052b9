import { ProviderError } from '../../client/orchestrator-client.ts';
import { ApiError } from '../contract/errors.ts';
import type { Store } from '../ports/store.ts';
import { describeSlow } from '../providers/describe-slow.ts';
import { shortageOf } from '../providers/shortage.ts';
import type { Action } from '../records/deployment-record.ts';
import { type BegunDeployment, endAction } from './begin-action.ts';

const verbs: Readonly<Record<Exclude<Action['kind'], 'volume'>, string>> = {
  pause: 'stop',
  resume: 'start',
  restart: 'restart',
};

/**
 * Ends a change that the provider did not take, so that the deployment is as it was before, and returns what to throw:
 * 400 where it gives us no more, 503 for any other 409 of a start, 409 where the provider is busy with another change, 502 for the rest. What the provider
 * said goes to the log alone.
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
