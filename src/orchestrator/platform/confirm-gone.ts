import type {
  ObservedMachine,
  ObservedVolume,
  OwnerRef,
  Presence,
  VolumeDriver,
} from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import { observe } from './call-platform.ts';
import type { ReconcileContext } from './context.ts';
import type { SharedListing } from './shared-listing.ts';
import type { Observation } from './visibility.ts';

/**
 * Reads one machine. `gone` is returned only if it is proved: `get` says so, and so does a trusted listing that began
 * after it; otherwise the answer is `unknown`. A resource that was made just now may be missing from both: see
 * `mayAppearForMs`.
 */
export async function confirmMachine(
  context: ReconcileContext,
  ref: OwnerRef,
): Promise<Observation<ObservedMachine>> {
  const observedAt = context.clock.now();
  const found = await observe(context, () => context.driver.get(ref));
  return { ...(await proved(found, ref, context.machines)), observedAt };
}

/**
 * {@link confirmMachine}, for one that is being removed. Once its own host says that it does not have it, it is gone: a host that
 * is lost for days must not hold the deletes of the others. What is not being removed may have been moved to that host.
 */
export async function confirmRemoved(
  context: ReconcileContext,
  { ownerRef, host }: Pick<InstanceRecord, 'ownerRef' | 'host'>,
): Promise<Observation<ObservedMachine>> {
  const observedAt = context.clock.now();
  const found = await observe(context, () => context.driver.get(ownerRef));
  const isElsewhereOnly =
    found.answer === 'unknown' && host !== null && found.silentHosts?.includes(host) === false;
  const seen = isElsewhereOnly ? ({ answer: 'gone' } as const) : found;
  return { ...(await proved(seen, ownerRef, context.machines)), observedAt };
}

/** {@link confirmMachine}, for a volume. */
export async function confirmVolume(
  context: ReconcileContext,
  volumes: VolumeDriver,
  ref: OwnerRef,
): Promise<Observation<ObservedVolume>> {
  const observedAt = context.clock.now();
  const found = await observe(context, () => volumes.get(ref));
  return { ...(await proved(found, ref, context.volumes)), observedAt };
}

async function proved<T>(
  found: Presence<T>,
  ref: OwnerRef,
  listing: Pick<SharedListing<{ ref: OwnerRef }>, 'lacks'> | undefined,
): Promise<Presence<T>> {
  if (found.answer !== 'gone') return found;
  const proof = await listing?.lacks(ref);
  if (proof === undefined) return { answer: 'unknown', reason: 'the platform cannot list what it has' };
  return proof.isProved ? found : { answer: 'unknown', reason: proof.reason };
}
