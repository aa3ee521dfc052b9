import { type FinalCode, isFinalCode } from '../model/failure.ts';
import type { Step } from '../model/platform-driver.ts';
import type { Lease } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';
import type { Again } from './settle.ts';
import { keepsFailing } from './step-alarms.ts';

export type Failed = Extract<Step<unknown>, { outcome: 'failed' }>;
type Retrying = Pick<ReconcileContext, 'options' | 'random' | 'health' | 'clock'>;

/**
 * The longest rest, in milliseconds. Work that waits for more than two hours counts as misdated and becomes due at
 * once.
 */
export const LONGEST_REST_MS = 60 * 60_000;

/** Codes that allow no conclusion about the resource. */
const INCONCLUSIVE = new Set<Failed['code']>(['unknown_outcome', 'transient', 'auth']);
/** The pause after the platform refused Berth's credentials, in milliseconds. Frequent calls might lock them. */
const AFTER_AUTH_MS = 5_000;

/** Whether a retry cannot succeed. A lost answer or a platform failure is never final. */
export function isFinal(failed: Failed): failed is Failed & { code: FinalCode } {
  return isFinalCode(failed.code);
}

/** Whether the failure allows no conclusion, not even at a deadline. The platform must be read first. */
export function isInconclusive({ code }: Failed): boolean {
  return INCONCLUSIVE.has(code);
}

/** Whether an earlier call of this step may have been sent. Its outcome is looked up before the next call. */
export function isRepeated({ attempt, cookie, lastError }: Lease): boolean {
  return cookie === null && (attempt > 1 || lastError !== null);
}

export function isPastDeadline({ deadlineAt }: Lease, now: number): boolean {
  return deadlineAt !== null && now >= deadlineAt;
}

/** A pause in milliseconds that doubles with each attempt, with jitter. */
export function pauseMs(
  { options, random }: Pick<Retrying, 'options' | 'random'>,
  { attempt }: Pick<Lease, 'attempt'>,
): number {
  const pause = Math.min(options.lastRetryMs, options.firstRetryMs * 2 ** Math.min(attempt - 1, 20));
  return Math.round(pause * (0.75 + random.next() / 2));
}

/**
 * Retries after a pause, which is at least the one that the platform asked for. If the step keeps failing, it raises an
 * alarm.
 */
export function retry(context: Retrying, lease: Lease, problem: string, retryAfterMs = 0): Again {
  const afterMs = Math.max(retryAfterMs, pauseMs(context, lease));
  return { step: 'again', afterMs, problem, isAlarm: keepsFailing(context, lease) };
}

/**
 * Like {@link retry}, after a failure of the driver. Refused credentials do not count as an attempt, unless the
 * platform is trusted: then the cause is this resource.
 */
export function retryFailed(context: Retrying, lease: Lease, failed: Failed): Again {
  const problem = describeFailure(failed);
  if (failed.code !== 'auth' || failed.sideEffect !== 'none')
    return retry(context, lease, problem, failed.retryAfterMs);
  if (context.health.isUp) {
    return retry(context, lease, problem, failed.retryAfterMs ?? AFTER_AUTH_MS);
  }
  const afterMs = failed.retryAfterMs ?? AFTER_AUTH_MS;
  // With a cookie, an earlier call was accepted, so the next attempt may not count as the first.
  const attempt = Math.max(lease.attempt - 1, lease.cookie === null ? 0 : 1);
  return { step: 'again', afterMs, problem, attempt };
}

export function describeFailure({ code, detail }: Pick<Failed, 'code' | 'detail'>): string {
  return `${code}: ${detail}`;
}
