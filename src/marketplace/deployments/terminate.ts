import {
  activeStatuses,
  type DeploymentStatus,
  type Terminated,
  type TerminationCheck,
} from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import { toTimestampOrNull } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import type { Providers } from '../providers/provider.ts';
import { runningMs } from './to-deployment.ts';
import { type TransitionDeps, transition } from './transition.ts';

/**
 * M: DELETE /api/deployments/{deploymentId}. Billing ends at once, even during another change. The worker deletes the
 * instance later.
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, or VALIDATION_ERROR for its status or before the minimum runtime is met
 */
export async function terminateDeployment(
  deps: TransitionDeps & Pick<Deps, 'store'>,
  caller: Caller,
  id: string,
): Promise<Terminated> {
  const { store, clock } = deps;
  // The user is read before the transaction, because billing mails lock the team first and then its users.
  const known = await ownDeployment(store.read, caller, id, 'end');
  const minimumMinutes = await minimumRuntimeMinutes(deps, known);
  const ended = await store.transact(async (tx) => {
    const record = await ownDeployment(tx, caller, id, 'end');
    const now = clock.now();
    const { canTerminate, reason, ...numbers } = checkTermination(record, minimumMinutes, now);
    if (!canTerminate)
      throw new ApiError('VALIDATION_ERROR', reason ?? 'It cannot be terminated now.', {
        details: { status: record.status, ...numbers },
      });
    return transition(deps, tx, record, { to: 'terminated', at: endsAt(deps.providers, record, now) });
  });
  const { status, stoppedAt } = ended;
  return {
    message: 'The deployment is terminated.',
    deployment: { id, status, stoppedAt: toTimestampOrNull(stoppedAt) },
  };
}

/** Without a configured provider, a terminate counts from the last observation: later time is not billed. */
export function endsAt(providers: Providers, record: DeploymentRecord, now: number): number {
  if (providers.get(record.providerId) !== undefined) return now;
  return record.observedAt ?? now;
}

const MINUTE_MS = 60_000;

/** M: States, rule 1: the reason text names the status. */
const refusals: Readonly<Record<DeploymentStatus, string | null>> = {
  deploying: 'A deployment that is deploying cannot be terminated: wait until it is running or failed.',
  running: null,
  stopped: null,
  failed: 'The deployment has already failed; this is final.',
  terminated: 'The deployment is already terminated; this is final.',
  'terminated-provider': 'The deployment is already terminated-provider; this is final.',
};

/** M: GET .../can-terminate. @throws {ApiError} NOT_FOUND or FORBIDDEN */
export async function canTerminate(
  deps: Pick<Deps, 'store' | 'clock' | 'options'>,
  caller: Caller,
  id: string,
): Promise<TerminationCheck> {
  const record = await ownDeployment(deps.store.read, caller, id, 'read');
  return checkTermination(record, await minimumRuntimeMinutes(deps, record), deps.clock.now());
}

/** The check counts whole minutes: it rounds the runtime down and the remaining time up. */
export function checkTermination(
  record: DeploymentRecord,
  minimumMinutes: number,
  now: number,
): TerminationCheck {
  const ranMs = runningMs(record, now);
  const runtime = Math.floor(ranMs / MINUTE_MS);
  const missingMs = Math.max(0, minimumMinutes * MINUTE_MS - ranMs);
  const isOver = record.stoppedAt !== null || !activeStatuses.includes(record.status);
  const timeRemaining = isOver ? 0 : Math.ceil(missingMs / MINUTE_MS);
  const numbers = { runtime, timeRemaining, minimumRuntime: minimumMinutes };
  const refusal = refusals[record.status];
  if (refusal !== null) return { canTerminate: false, ...numbers, reason: refusal };
  if (missingMs === 0) return { canTerminate: true, ...numbers };
  const frozen = record.status === 'stopped' ? ' Time stopped does not count: start it first.' : '';
  return {
    canTerminate: false,
    ...numbers,
    reason: `The deployment must run for at least ${minimumMinutes} minutes; ${timeRemaining} remain.${frozen}`,
  };
}

/**
 * M: Deployments, rule 4: "the longer of the account minimum (default 20 minutes) and `providerMinimumRuntimeMinutes`".
 * The account is that of the user who created the deployment.
 */
export async function minimumRuntimeMinutes(
  { store, options }: Pick<Deps, 'store' | 'options'>,
  {
    userId,
    providerMinimumRuntimeMinutes: minimum,
  }: Pick<DeploymentRecord, 'userId' | 'providerMinimumRuntimeMinutes'>,
): Promise<number> {
  const user = await store.read.users.byId(userId);
  return Math.max(user?.minimumRuntimeMinutes ?? options.minimumRuntimeMinutes, minimum ?? 0);
}
