import { ApiError } from '../contract/errors.ts';
import type { Intent } from '../model/intent.ts';

/** A call for a requested change, as errors name it. */
export interface IntendedCall {
  providerId: string;
  what: string;
  thing: 'deployment' | 'volume';
  details?: Record<string, unknown>;
}

/** The error when nothing was sent to the provider in time. */
export function notReached(call: IntendedCall): ApiError {
  return refusedError(call, 'was not reached for');
}

export function refusedError(
  { providerId, what, details }: IntendedCall,
  verb: 'was not reached for' | 'refused',
): ApiError {
  return new ApiError('PROVIDER_REFUSED', `${providerId} ${verb} the ${what}; nothing changed.`, { details });
}

/**
 * The error for a change that was sent but does not show yet (M: 504, "Poll the deployment"). `answer` is the answer to
 * the call; `unknown` means that a later change has overwritten it.
 */
export function slowError(
  { providerId, what, thing, details }: IntendedCall,
  answer: Intent['answer'] | 'unknown',
): ApiError {
  return new ApiError('PROVIDER_SLOW', `${outcomeOf()}; poll the ${thing} instead of retrying.`, { details });

  function outcomeOf(): string {
    if (answer === 'unknown') return `The outcome of the ${what} at ${providerId} is not known`;
    if (answer === 'accepted') return `${providerId} has accepted the ${what} and has not finished it yet`;
    const said = answer === null ? `did not answer the ${what}` : `answered ${answer} to the ${what}`;
    return `${providerId} ${said}, so it may or may not happen`;
  }
}
