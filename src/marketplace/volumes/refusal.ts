import { ProviderError } from '../../client/orchestrator-client.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { describeSlow, type Shortage, shortageOf } from '../providers/capabilities.ts';

/** What the use cases of volumes that speak to a provider are made of. */
export type VolumeDeps = Pick<
  Deps,
  'store' | 'clock' | 'random' | 'log' | 'providers' | 'options' | 'installationId' | 'wake'
>;

const shortages: Readonly<Record<Shortage, string>> = {
  out_of_stock:
    'has not enough free storage there now: try a smaller size, another region or another provider',
  quota_exceeded: 'gives this marketplace no more storage for now: try another provider',
};

type What = 'create' | 'attach' | 'detach' | 'resize' | 'deletion';

/** What a user is told of a change that the provider did not take. What the provider said goes to the log alone. */
export function refusal(what: What, { providerId, volumeId }: VolumeRecord, error: unknown): unknown {
  if (!(error instanceof ProviderError)) return error;
  const options = { cause: error, details: { volumeId } };
  const reason = shortageOf(error);
  if (reason !== undefined)
    return new ApiError('VALIDATION_ERROR', `${providerId} ${shortages[reason]}; nothing changed.`, {
      cause: error,
      details: { volumeId, reason },
    });
  if (error.problem === 'conflict' && error.code === 'operation_in_progress')
    return new ApiError(
      'CHANGE_IN_PROGRESS',
      `${providerId} is still busy with another change; wait a few minutes and try again.`,
      options,
    );
  const verb = error.problem === 'unreachable' ? 'was not reached for' : 'refused';
  return new ApiError('PROVIDER_REFUSED', `${providerId} ${verb} the ${what}; nothing changed.`, options);
}

/** A later look ends the change. `problem`: what came in place of the provider's answer; null: it accepted the change. */
export function slow(what: What, { providerId, volumeId }: VolumeRecord, problem: unknown): ApiError {
  return new ApiError('PROVIDER_SLOW', describeSlow({ providerId, what, thing: 'volume' }, problem), {
    cause: problem ?? undefined,
    details: { volumeId },
  });
}

/** Whether it is certain that the provider has not done what it was asked for. */
export function isDefinite(error: unknown): boolean {
  return error instanceof ProviderError && !error.mayHaveHappened;
}

/** That a call was refused for who asked, how often, or while another one is under way says nothing of an earlier one. */
export function isDecided(error: unknown): boolean {
  if (!(error instanceof ProviderError) || !isDefinite(error) || error.code === 'operation_in_progress')
    return false;
  return !['unreachable', 'unauthorized', 'limited'].includes(error.problem);
}
