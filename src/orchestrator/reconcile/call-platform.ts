import type { Clock } from '../ports/clock.ts';
import type { Listing, Presence, Step } from '../ports/platform-driver.ts';
import type { ReconcileContext } from './context.ts';
import type { Lease } from './work.ts';

type Caller = Pick<ReconcileContext, 'clock' | 'options' | 'failpoint'>;

/** One step of a driver with a deadline. A rejection or a late answer leaves its outcome unknown. */
export async function callStep<T>(
  context: Caller,
  { kind }: Pick<Lease, 'kind'>,
  call: () => Promise<Step<T>>,
): Promise<Step<T>> {
  context.failpoint(`${kind}:before-call`);
  const answer = await beforeDeadline(context, call);
  context.failpoint(`${kind}:after-call`);
  return 'value' in answer
    ? answer.value
    : { outcome: 'failed', code: 'unknown_outcome', sideEffect: 'possible', detail: answer.problem };
}

/** A look at the platform with a deadline. Whatever goes wrong is `unknown`, never absence. */
export async function look<Answer extends Presence<unknown> | Listing<unknown>>(
  context: Pick<Caller, 'clock' | 'options'>,
  call: () => Promise<Answer>,
): Promise<Answer | { answer: 'unknown'; reason: string }> {
  const answer = await beforeDeadline(context, call);
  return 'value' in answer ? answer.value : { answer: 'unknown', reason: answer.problem };
}

/** Waits for an answer no longer than a call may take; never rejects. */
export async function beforeDeadline<T>(
  { clock, options }: { clock: Clock; options: { callTimeoutMs: number } },
  call: () => Promise<T>,
): Promise<{ value: T } | { problem: string }> {
  const { promise: deadline, resolve } = Promise.withResolvers<{ problem: string }>();
  const timer = clock.setTimer(options.callTimeoutMs, () =>
    resolve({ problem: `no answer within ${options.callTimeoutMs} ms` }),
  );
  try {
    return await Promise.race([call().then((value) => ({ value })), deadline]);
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  } finally {
    timer.cancel();
  }
}
