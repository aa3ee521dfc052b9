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

/** Whether trying the step again cannot help. A lost answer or a platform in trouble is never final. */
export function isFinal(failed: Failed): boolean {
  return FINAL.has(failed.code);
}

/** A pause that doubles with each attempt, with jitter. */
export function pauseMs(
  { options, random }: Pick<Retrying, 'options' | 'random'>,
  { attempt }: Lease,
): number {
  const pause = Math.min(options.lastRetryMs, options.firstRetryMs * 2 ** Math.min(attempt - 1, 20));
  return Math.round(pause * (0.75 + random.next() / 2));
}

/** Tries again after a pause, or when the platform asked for it. Raises an alarm in time. */
export function retry(context: Retrying, lease: Lease, problem: string, retryAfterMs?: number): Next {
  if (lease.attempt % ALARM_AFTER_ATTEMPTS === 0)
    context.log.error(
      { resource: lease.resourceId, step: lease.kind, attempt: lease.attempt, problem },
      'a step keeps failing; it is tried for ever, look at the platform',
    );
  return { step: 'again', afterMs: retryAfterMs ?? pauseMs(context, lease), problem };
}

export function describeFailure({ code, detail }: Failed): string {
  return `${code}: ${detail}`;
}
