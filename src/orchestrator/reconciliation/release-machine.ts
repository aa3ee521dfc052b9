import type { ObservedMachine } from '../model/platform-driver.ts';
import type { ReconcileContext } from '../platform/context.ts';
import type { OrphanOutcome } from './rowless.ts';

/** Takes our mark off a machine without an instance: from then on it belongs to the operator. */
export async function releaseMachine(
  { driver, clock, options }: Pick<ReconcileContext, 'driver' | 'clock' | 'options'>,
  { ref }: ObservedMachine,
): Promise<OrphanOutcome> {
  if (driver.disown === undefined)
    return { problem: 'its driver cannot take the mark off: do it on the platform', isWhole: true };
  const now = clock.now();
  const controller = new AbortController();
  const timer = clock.setTimer(options.callTimeoutMs, () => controller.abort());
  const limits = { deadline: now + options.callTimeoutMs, fence: now, signal: controller.signal };
  const step = await driver.disown(ref, null, limits).finally(() => timer.cancel());
  if (step.outcome === 'done') return 'released';
  if (step.outcome === 'pending' || step.code === 'transient') return 'unknown';
  return step.code === 'gone' ? 'gone' : { problem: `${step.code}: ${step.detail}`, isWhole: true };
}
