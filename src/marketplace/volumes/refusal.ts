import { ProviderError } from '../../client/orchestrator-client.ts';
import { ApiError } from '../contract/errors.ts';
import type { VolumeRecord } from '../records/volume-record.ts';

type What = 'create' | 'attach' | 'detach' | 'resize' | 'deletion';

/** What a user is told of a change that the provider did not take. What the provider said goes to the log alone. */
export function refusal(what: What, { providerId, volumeId }: VolumeRecord, error: unknown): unknown {
  if (!(error instanceof ProviderError)) return error;
  const options = { cause: error, details: { volumeId } };
  if (error.problem === 'conflict' && error.code === 'operation_in_progress')
    return new ApiError(
      'CHANGE_IN_PROGRESS',
      `${providerId} is still busy with another change; wait a few minutes and try again.`,
      options,
    );
  const verb = error.problem === 'unreachable' ? 'was not reached for' : 'refused';
  return new ApiError('PROVIDER_REFUSED', `${providerId} ${verb} the ${what}; nothing changed.`, options);
}

/** The provider has taken the change, and a later look ends it. */
export function slow(what: What, { providerId, volumeId }: VolumeRecord): ApiError {
  return new ApiError(
    'PROVIDER_SLOW',
    `${providerId} has taken the ${what} and is slow; poll the volume rather than trying again.`,
    { details: { volumeId } },
  );
}

/** Whether it is certain that the provider has not done what it was asked for. */
export function isDefinite(error: unknown): boolean {
  return error instanceof ProviderError && !error.mayHaveHappened;
}
