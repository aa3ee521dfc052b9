import type { Step } from '../model/platform-driver.ts';
import type { PlatformResource } from '../model/platform-resource.ts';
import type { Lease } from '../model/work.ts';
import { callStep } from '../platform/call-platform.ts';
import { afterObservation, type Learnt, mayTurnUpForMs, type Observation } from '../platform/visibility.ts';
import type { StepContext } from './context.ts';
import { retry, retryFailed } from './retry.ts';
import type { Next } from './settle.ts';

/** What a driver said of a resource that it was asked to remove, and what a look then showed. */
export interface Removal {
  step: Step<null>;
  /** Only where the driver said that it is gone: `gone` is proved. */
  found: Observation<unknown> | undefined;
  /** When the call was answered. */
  answeredAt: number;
}

interface Removable {
  destroy(cookie: string | null): Promise<Step<null>>;
  /** A look whose `gone` is proved. */
  find(): Promise<Observation<unknown>>;
}

/** Has the platform remove a resource; that it is gone is not believed without proof. */
export async function remove(context: StepContext, lease: Lease, removable: Removable): Promise<Removal> {
  const step = await callStep(context, lease, () => removable.destroy(lease.cookie));
  const isClaimedGone = step.outcome === 'done' || (step.outcome === 'failed' && step.code === 'gone');
  const answeredAt = context.clock.now();
  return { step, found: isClaimedGone ? await removable.find() : undefined, answeredAt };
}

/** What the removal shows of a create that may still turn up. A platform that is removing a resource has shown it. */
export function whatItShowed({ step, found, answeredAt }: Removal): Learnt {
  if (step.outcome === 'pending') return () => null;
  return afterObservation(found ?? { answer: 'unknown', observedAt: answeredAt });
}

/**
 * How the removal goes on; undefined: it is proved. What a create made that is still out, whose answer was lost or
 * came just now, may yet turn up where a look says `gone`.
 */
export function unproved(
  context: StepContext,
  lease: Lease,
  { ownerRef, createOpenUntil }: PlatformResource,
  { step, found }: Removal,
): Next | undefined {
  if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
  if (found === undefined && step.outcome === 'failed') return retryFailed(context, lease, step);
  if (found?.answer === 'unknown') return retry(context, lease, `it is not proved gone: ${found.reason}`);
  if (found?.answer !== 'gone')
    return retry(context, lease, 'the platform said that it is gone, and still has it');
  if (context.creates.isOut(ownerRef)) return retry(context, lease, 'a create has not come back yet');
  const waitMs = mayTurnUpForMs(context, createOpenUntil, found.observedAt);
  return waitMs > 0
    ? { step: 'again', afterMs: waitMs, problem: 'the platform may not show it yet' }
    : undefined;
}
