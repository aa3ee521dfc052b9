import type { Step } from '../ports/platform-driver.ts';
import type { ReconcileContext } from './context.ts';
import type { Next } from './settle.ts';
import type { Lease } from './work.ts';

type Failed = Extract<Step<unknown>, { outcome: 'failed' }>;
type Retrying = Pick<ReconcileContext, 'options' | 'random' | 'log'>;

/** Codes after which the same step cannot succeed. */
const FINAL = new Set<Failed['code']>([
  'capacity',
  'quota',
  'invalid',
  'unsupported',
  'image_missing',
  'boot_failed',
  'device_fault',
]);
const ALARM_AFTER_ATTEMPTS = 10;

/** Whether trying the step again cannot help. A failure that says nothing for certain is never final. */
export function isFinal(failed: Failed): boolean {
  return FINAL.has(failed.code);
}

/** Tries again after a pause that doubles, with jitter, or that the platform asked for. Raises an alarm in time. */
export function retry(
  { options, random, log }: Retrying,
  lease: Lease,
  problem: string,
  retryAfterMs?: number,
): Next {
  const exponent = Math.min(lease.attempt - 1, 20);
  const pause = Math.min(options.lastRetryMs, options.firstRetryMs * 2 ** exponent);
  if (lease.attempt % ALARM_AFTER_ATTEMPTS === 0)
    log.error(
      { resource: lease.resourceId, step: lease.kind, attempt: lease.attempt, problem },
      'a step keeps failing; it is tried for ever, look at the platform',
    );
  return { step: 'again', afterMs: retryAfterMs ?? Math.round(pause * (0.75 + random.next() / 2)), problem };
}

export function describeFailure({ code, detail }: Failed): string {
  return `${code}: ${detail}`;
}
