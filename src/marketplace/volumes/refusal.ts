import { ProviderError } from '../../client/orchestrator-client.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { describeSlow, type Shortage, shortageOf } from '../providers/capabilities.ts';

/** What the use cases of volumes that call a provider use. */
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

/** The error for a change that the provider refused. The provider's own text goes to the log only. */
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

/**
 * The 504 for a change that has not shown yet; a later sync ends it. `problem`: the error that the provider's call
 * ended with; null: it was accepted.
 */
export function slow(what: What, { providerId, volumeId }: VolumeRecord, problem: unknown): ApiError {
  return new ApiError('PROVIDER_SLOW', describeSlow({ providerId, what, thing: 'volume' }, problem), {
    cause: problem ?? undefined,
    details: { volumeId },
  });
}

/**
 * Sends a change to the provider. What came in place of an answer is returned; null: the provider accepted it. A
 * definite refusal is undone and thrown, unless `undo` says that the change goes on all the same.
 *
 * @throws {ApiError} what the user is told of a refusal
 */
export async function sendOrUndo(
  what: What,
  record: VolumeRecord,
  { send, undo }: { send: () => Promise<void>; undo: () => Promise<boolean> },
): Promise<ProviderError | null> {
  try {
    await send();
    return null;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (isDefinite(error) && (await undo())) throw refusal(what, record, error);
    return error;
  }
}

/** Whether it is certain that the provider has not done what it was asked for. */
export function isDefinite(error: unknown): boolean {
  return error instanceof ProviderError && !error.mayHaveHappened;
}

/** These problems are about the caller or the rate, so they say nothing of an earlier call. */
export const ABOUT_THIS_CALL: readonly ProviderError['problem'][] = [
  'unreachable',
  'unauthorized',
  'limited',
];

/**
 * Whether the refusal also proves that an earlier call had no effect: not if it is about the caller, the rate or a
 * running operation.
 */
export function isDecided(error: unknown): boolean {
  if (!(error instanceof ProviderError) || !isDefinite(error) || error.code === 'operation_in_progress')
    return false;
  return !ABOUT_THIS_CALL.includes(error.problem);
}
