import type { OwnerRef, Presence, Step } from '../ports/platform-driver.ts';
import { callStep } from './call-platform.ts';
import type { StepContext } from './context.ts';
import { mayTurnUpForMs } from './look-before-create.ts';
import { retry, retryFailed } from './retry.ts';
import type { Next } from './settle.ts';
import type { Lease } from './work.ts';

/** What a driver said of a resource that it was asked to remove, and what a look then showed. */
export interface Removal {
  step: Step<null>;
  /** Only where the driver said that it is gone: `gone` is proved. */
  found: Presence<unknown> | undefined;
  /** When the look began. */
  lookedAt: number;
}

interface Removable {
  destroy(cookie: string | null): Promise<Step<null>>;
  /** A look whose `gone` is proved. */
  find(): Promise<Presence<unknown>>;
}

/** Has the platform remove a resource; that it is gone is not believed without proof. */
export async function remove(context: StepContext, lease: Lease, removable: Removable): Promise<Removal> {
  const step = await callStep(context, lease, () => removable.destroy(lease.cookie));
  const isClaimedGone = step.outcome === 'done' || (step.outcome === 'failed' && step.code === 'gone');
  const lookedAt = context.clock.now();
  return { step, found: isClaimedGone ? await removable.find() : undefined, lookedAt };
}

/** The platform has shown what is removed: no create of it is still to turn up. Its answer is for the settling. */
export function whatItShowed({ step, found }: Removal): { createOpenUntil?: null } {
  const isShown = step.outcome === 'pending' || found?.answer === 'observed';
  return isShown ? { createOpenUntil: null } : {};
}

/**
 * How the removal goes on; undefined: it is proved. What a create made that is still out, whose answer was lost or
 * came just now, may yet turn up where a look says `gone`.
 */
export function unproved(
  context: StepContext,
  lease: Lease,
  { ownerRef, createdAt }: { ownerRef: OwnerRef; createdAt: number },
  { step, found, lookedAt }: Removal,
  wasSeen: boolean,
): Next | undefined {
  const { creates, startedAt } = context;
  if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
  if (found === undefined && step.outcome === 'failed') return retryFailed(context, lease, step);
  if (found?.answer === 'unknown') return retry(context, lease, `it is not proved gone: ${found.reason}`);
  if (found?.answer !== 'gone')
    return retry(context, lease, 'the platform said that it is gone, and still has it');
  if (creates.isOut(ownerRef)) return retry(context, lease, 'a create has not come back yet');
  // A database that was restored does not know of the creates that were sent after its backup.
  const isOlder = createdAt < startedAt && !wasSeen;
  const waitMs = Math.max(
    mayTurnUpForMs(context, lease.createOpenUntil, lookedAt),
    mayTurnUpForMs(context, isOlder ? startedAt : null, lookedAt),
  );
  return waitMs > 0 ? { step: 'again', afterMs: waitMs, problem: 'a create may still turn up' } : undefined;
}
