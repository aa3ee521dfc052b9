import type {
  ObservedMachine,
  ObservedVolume,
  OwnerRef,
  Presence,
  VolumeDriver,
} from '../model/platform-driver.ts';
import { look } from './call-platform.ts';
import type { ReconcileContext } from './context.ts';
import type { Inventory } from './shared-listing.ts';
import type { Look } from './visibility.ts';

/**
 * A look at one machine whose `gone` is proved: the platform says so, and so does a listing that began after it and
 * can be believed. Otherwise it is `unknown`. What was made just now may be missing from both all the same: see
 * `mayTurnUpForMs`.
 */
export async function findMachine(context: ReconcileContext, ref: OwnerRef): Promise<Look<ObservedMachine>> {
  const lookedAt = context.clock.now();
  const found = await look(context, () => context.driver.get(ref));
  return { ...(await proved(found, ref, context.machines)), lookedAt };
}

/** {@link findMachine}, for a volume. */
export async function findVolume(
  context: ReconcileContext,
  volumes: VolumeDriver,
  ref: OwnerRef,
): Promise<Look<ObservedVolume>> {
  const lookedAt = context.clock.now();
  const found = await look(context, () => volumes.get(ref));
  return { ...(await proved(found, ref, context.volumes)), lookedAt };
}

async function proved<T>(
  found: Presence<T>,
  ref: OwnerRef,
  inventory: Pick<Inventory<{ ref: OwnerRef }>, 'lacks'> | undefined,
): Promise<Presence<T>> {
  if (found.answer !== 'gone') return found;
  const proof = await inventory?.lacks(ref);
  if (proof === undefined) return { answer: 'unknown', reason: 'the platform cannot list what it has' };
  return proof.isProved ? found : { answer: 'unknown', reason: proof.reason };
}
