import type { OwnerRef, Presence, Step } from '../ports/platform-driver.ts';
import { callStep, look } from './call-platform.ts';
import type { StepContext } from './context.ts';
import { describeFailure, retry } from './retry.ts';
import type { Next } from './settle.ts';
import type { Lease } from './work.ts';

/** What a driver said of a resource that it was asked to remove, and what a look then showed. */
export interface Removal {
  step: Step<null>;
  /** Only where the driver said that it is gone. */
  found: Presence<unknown> | undefined;
}

interface Removable {
  destroy(ref: OwnerRef, cookie: string | null): Promise<Step<null>>;
  get(ref: OwnerRef): Promise<Presence<unknown>>;
}

/** Has the platform remove a resource; that it is gone is not believed without a look. */
export async function remove(
  context: StepContext,
  lease: Lease,
  driver: Removable,
  ref: OwnerRef,
): Promise<Removal> {
  const step = await callStep(context, lease, () => driver.destroy(ref, lease.cookie));
  const isClaimedGone = step.outcome === 'done' || (step.outcome === 'failed' && step.code === 'gone');
  return { step, found: isClaimedGone ? await look(context, () => driver.get(ref)) : undefined };
}

/**
 * How the removal goes on; undefined: it is proved. A create that is still out, or whose answer was lost, may yet
 * turn up where a look says `gone`, unless the resource `wasSeen` since.
 */
export function unproved(
  context: StepContext,
  lease: Lease,
  ref: OwnerRef,
  { step, found }: Removal,
  wasSeen: boolean,
): Next | undefined {
  const { creates } = context;
  if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
  if (found === undefined && step.outcome === 'failed')
    return retry(context, lease, describeFailure(step), step.retryAfterMs);
  if (found?.answer === 'unknown')
    return retry(context, lease, `the platform could not be asked whether it is gone: ${found.reason}`);
  if (found?.answer !== 'gone')
    return retry(context, lease, 'the platform said that it is gone, and still has it');
  if (creates.isOut(ref)) return retry(context, lease, 'a create has not come back yet');
  const waitMs = wasSeen ? 0 : creates.mayTurnUpForMs(ref);
  if (waitMs > 0) return { step: 'again', afterMs: waitMs, problem: 'a create may still turn up' };
  creates.forget(ref);
  return undefined;
}
