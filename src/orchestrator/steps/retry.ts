import { type FinalCode, isFinalCode } from '../model/failure.ts';
import type { Step } from '../model/platform-driver.ts';
import type { Lease } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { type Again, ALARM_AFTER_ATTEMPTS } from './settle.ts';

export type Failed = Extract<Step<unknown>, { outcome: 'failed' }>;
type Retrying = Pick<ReconcileContext, 'options' | 'random' | 'health'>;

/** Work that waits for more than two hours counts as misdated and is due at once, so it rests no longer than this, in milliseconds. */
export const LONGEST_REST_MS = 60 * 60_000;

/** Codes that say nothing about the resource. */
const INCONCLUSIVE = new Set<Failed['code']>(['unknown_outcome', 'transient', 'auth']);
/** A platform that refuses our credentials is not asked often: it may lock them. */
const AFTER_AUTH_MS = 5_000;

/** Whether trying the step again cannot help. A lost answer or a platform in trouble is never final. */
export function isFinal(failed: Failed): failed is Failed & { code: FinalCode } {
  return isFinalCode(failed.code);
}

/** Whether nothing can be concluded from the failure, not even at a deadline: the platform must be read first. */
export function isInconclusive({ code }: Failed): boolean {
  return INCONCLUSIVE.has(code);
}

/** Whether a call of this step may have been sent before: its outcome is looked for ahead of the next one. */
export function isRepeated({ attempt, cookie, lastError }: Lease): boolean {
  return cookie === null && (attempt > 1 || lastError !== null);
}

export function isPastDeadline({ deadlineAt }: Lease, now: number): boolean {
  return deadlineAt !== null && now >= deadlineAt;
}

/** A pause that doubles with each attempt, with jitter. */
export function pauseMs(
  { options, random }: Pick<Retrying, 'options' | 'random'>,
  { attempt }: Lease,
): number {
  const pause = Math.min(options.lastRetryMs, options.firstRetryMs * 2 ** Math.min(attempt - 1, 20));
  return Math.round(pause * (0.75 + random.next() / 2));
}

/** Tries again after a pause, or when the platform asked for it. From the tenth attempt on it is an alarm, which every tenth repeats in the log. */
export function retry(context: Retrying, lease: Lease, problem: string, retryAfterMs?: number): Again {
  const isAlarm = lease.attempt >= ALARM_AFTER_ATTEMPTS;
  return { step: 'again', afterMs: retryAfterMs ?? pauseMs(context, lease), problem, isAlarm };
}

/**
 * {@link retry} after a failure of the driver. Refused credentials do not count as an attempt, unless the platform is
 * trusted: then the problem is this resource's.
 */
export function retryFailed(context: Retrying, lease: Lease, failed: Failed): Again {
  const problem = describeFailure(failed);
  if (failed.code !== 'auth' || failed.sideEffect !== 'none')
    return retry(context, lease, problem, failed.retryAfterMs);
  if (context.health.isUp) {
    const afterMs = failed.retryAfterMs ?? Math.max(AFTER_AUTH_MS, pauseMs(context, lease));
    return retry(context, lease, problem, afterMs);
  }
  const afterMs = failed.retryAfterMs ?? AFTER_AUTH_MS;
  return { step: 'again', afterMs, problem, attempt: lease.attempt - 1 };
}

export function describeFailure({ code, detail }: Pick<Failed, 'code' | 'detail'>): string {
  return `${code}: ${detail}`;
}
