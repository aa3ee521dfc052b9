import type { ProviderError } from '../../client/orchestrator-client.ts';
import type { Clock } from '../../ports/clock.ts';
import { ApiError } from '../contract/errors.ts';
import { fromRefusal, type Intent, type Refusal } from '../model/intent.ts';
import type { Store } from '../model/store.ts';
import { whenWritten } from '../model/waiting.ts';
import { shortageOf } from './capabilities.ts';

/** A call for a requested change, as errors name it. */
export interface IntendedCall {
  providerId: string;
  what: string;
  thing: 'deployment' | 'volume';
  details?: Record<string, unknown>;
}

/** The error when nothing was sent to the provider in time. */
export function notReached({ providerId, what, details }: IntendedCall): ApiError {
  const message = `${providerId} was not reached for the ${what}; nothing changed.`;
  return new ApiError('PROVIDER_REFUSED', message, { details });
}

/** The error when the provider did nothing. Its own text goes to the log only. */
export function refusedError(call: IntendedCall, error: ProviderError): ApiError {
  const { problem, code } = error;
  const { providerId, what, thing, details } = call;
  const reason = shortageOf(error);
  if (problem === 'unreachable') return notReached(call);
  if (reason === 'quota_exceeded' || (reason !== undefined && thing === 'volume')) {
    const shortage =
      reason === 'quota_exceeded'
        ? `The quota of this marketplace at ${providerId} is used up`
        : `${providerId} does not have enough free storage there: try another size, region or provider`;
    return new ApiError('VALIDATION_ERROR', `${shortage}; nothing changed.`, {
      details: { ...details, reason },
    });
  }
  if (problem === 'conflict' && code === 'operation_in_progress')
    return new ApiError(
      'CHANGE_IN_PROGRESS',
      `${providerId} is still busy with another change; wait a few minutes and try again.`,
      { details },
    );
  const message = `${providerId} refused the ${what}; nothing changed.`;
  return new ApiError('PROVIDER_REFUSED', message, { details });
}

/**
 * The error for a change that was sent but does not show yet (M: 504, "Poll the deployment"). `answer` is the answer to
 * the call; `unknown` means that a later change has overwritten it.
 */
function slowError(
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

/** What was read of a row with an intent. */
interface SeenRow {
  action: Intent | null;
  refusal: Refusal | null;
}

/**
 * Waits until the intent is over. An intent that was not sent by its deadline is withdrawn: `withdraw` locks the row.
 * `goesOn` returns whether the change is in progress although its intent is gone, or throws why it is not. An intent
 * missing from the row proves neither success nor refusal.
 * @throws {ApiError} the provider's refusal; PROVIDER_REFUSED: not sent; PROVIDER_SLOW (M: 504): sent, and the row does
 * not show its outcome
 */
export async function awaitIntent<Seen extends SeenRow>(
  deps: { store: Pick<Store, 'watch'>; clock: Clock },
  asked: { id: string; action: Intent },
  call: IntendedCall,
  of: {
    read(): Promise<Seen>;
    withdraw(): Promise<{ seen: Seen; isWithdrawn: boolean }>;
    isDone(seen: Seen): boolean;
    goesOn?(seen: Seen): boolean;
  },
): Promise<Seen> {
  const ifOver = (seen: Seen): Seen | null => {
    const { refusal, action } = seen;
    if (refusal?.id === asked.action.id) throw fromRefusal(refusal);
    if (of.isDone(seen)) return seen;
    if (action?.id === asked.action.id || of.goesOn?.(seen) === true) return null;
    throw slowError(call, 'unknown');
  };
  const until = asked.action.until ?? deps.clock.now();
  const read = async () => ifOver(await of.read());
  const done = await whenWritten(deps, asked.id, until, read, { isJustWritten: true });
  if (done !== null) return done;
  const { seen, isWithdrawn } = await of.withdraw();
  if (isWithdrawn) throw notReached(call);
  const late = ifOver(seen);
  if (late !== null) return late;
  throw slowError(call, seen.action?.answer ?? null);
}
