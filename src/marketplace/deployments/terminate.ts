import type { Caller } from '../caller.ts';
import type { Terminated } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import { toTimestampOrNull } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import { ownDeployment } from './access.ts';
import { checkTermination, minimumRuntimeMinutes } from './can-terminate.ts';
import { endsAt } from './provider-of.ts';
import { type TransitionDeps, transition } from './transition.ts';

/**
 * M: DELETE /api/deployments/{deploymentId}. The user's cost ends now; the provider's instance is deleted afterwards, for
 * as long as it takes. A change that is in flight does not hold it up: nobody pays on for what they want to be rid of.
 *
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, or VALIDATION_ERROR for a status that does not allow it and before the
 *   minimum runtime is met
 */
export async function terminateDeployment(
  deps: TransitionDeps & Pick<Deps, 'store' | 'wake'>,
  caller: Caller,
  id: string,
): Promise<Terminated> {
  const { store, clock, options } = deps;
  // Read before the transaction: who mails of a team's money locks the team and then its users.
  const known = await ownDeployment(store.read, caller, id);
  const minimumMinutes = await minimumRuntimeMinutes(store.read, options, known);
  const ended = await store.transact(async (tx) => {
    const record = await ownDeployment(tx, caller, id);
    const now = clock.now();
    const { canTerminate, reason, ...numbers } = checkTermination(record, minimumMinutes, now);
    if (!canTerminate)
      throw new ApiError('VALIDATION_ERROR', reason ?? 'It cannot be terminated now.', {
        details: { status: record.status, ...numbers },
      });
    return transition(deps, tx, record, { to: 'terminated', at: endsAt(deps.providers, record, now) });
  });
  deps.wake(ended.providerId);
  const { status, stoppedAt } = ended;
  return {
    message: 'The deployment is terminated.',
    deployment: { id, status, stoppedAt: toTimestampOrNull(stoppedAt) },
  };
}
