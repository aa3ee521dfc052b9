import type { ObservedMachine } from '../model/platform-driver.ts';
import { callOnce } from '../platform/call-platform.ts';
import type { ReconcileContext } from '../platform/context.ts';
import type { OrphanOutcome } from './rowless.ts';

/** Removes our mark from a machine without an instance. From then on it belongs to the operator. */
export async function releaseMachine(
  context: Pick<ReconcileContext, 'driver' | 'clock' | 'options'>,
  { ref }: ObservedMachine,
): Promise<OrphanOutcome> {
  const { driver } = context;
  const { disown } = driver;
  if (disown === undefined)
    return { problem: 'its driver cannot remove the tag: remove it on the platform', isWhole: true };
  const step = await callOnce(context, (limits) => disown.call(driver, ref, null, limits));
  if (step.outcome === 'done') return 'released';
  if (step.outcome === 'pending' || step.code === 'transient') return 'unknown';
  return step.code === 'gone' ? 'gone' : { problem: `${step.code}: ${step.detail}`, isWhole: true };
}
