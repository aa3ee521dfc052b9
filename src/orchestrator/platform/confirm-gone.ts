import type { ObservedMachine, ObservedVolume, OwnerRef, Presence } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import { isUnseen, judgeHosts, toHosts } from './asked-hosts.ts';
import { observe } from './call-platform.ts';
import type { ReconcileContext } from './context.ts';
import { areLossesAccepted } from './loss-cap.ts';
import type { SharedListing } from './shared-listing.ts';
import type { Observation } from './visibility.ts';

/**
 * Reads one machine. `gone` is returned only if it is proved: `get` says so, and so does a trusted listing that began
 * after it; otherwise the answer is `unknown`. A resource that was made just now may be missing from both: see
 * `mayAppearForMs`.
 */
export async function confirmMachine(
  context: ReconcileContext,
  record: Located,
): Promise<Observation<ObservedMachine>> {
  const observedAt = context.clock.now();
  const found = await readMachine(context, record);
  return { ...(await proved(found, record.ownerRef, context.machines)), observedAt };
}

/**
 * {@link confirmMachine}, for one that is being removed: a host that is lost for days must not hold the deletes of the others.
 * Once its own host says that it does not have it, it is gone, if it cannot have been moved to a host that is silent:
 * a listing showed it while those were silent already, or the operator accepts losses.
 */
export async function confirmRemoved(
  context: ReconcileContext,
  record: Located,
): Promise<Observation<ObservedMachine>> {
  const observedAt = context.clock.now();
  const found = await readMachine(context, record);
  const seen = found.answer === 'unknown' ? await besideSilence(context, found, record) : found;
  return { ...(await proved(seen, record.ownerRef, context.machines)), observedAt };
}

/** Where the row says that its machine is. */
type Located = Pick<InstanceRecord, 'ownerRef' | 'host'>;

/** Reads the machine of a row. */
export function readMachine(context: ReconcileContext, record: Located): Promise<Presence<ObservedMachine>> {
  return observe(context, () => askForMachine(context, record));
}

/** Asks the driver for the machine of a row. `gone` is also the answer of the host that had it last. */
export async function askForMachine(
  context: ReconcileContext,
  { ownerRef, host }: Located,
): Promise<Presence<ObservedMachine>> {
  const found = await context.driver.get(ownerRef);
  if (found.answer !== 'gone' || found.hosts === undefined) return found;
  if (!isUnseen(await judgeHosts(context, toHosts(found.hosts)), { host })) return found;
  return { answer: 'unknown', reason: `it was last seen on ${host}, which is no host of the platform now` };
}

async function besideSilence(
  context: ReconcileContext,
  found: Extract<Presence<never>, { answer: 'unknown' }>,
  { ownerRef, host }: Located,
): Promise<Presence<never>> {
  const { answered, silent } = toHosts(found.hosts);
  if (found.hosts === undefined || host === null || answered === 'all' || !answered.has(host)) return found;
  const cannotBeElsewhere =
    context.machines.seenBeside.has(ownerRef, silent) || (await areLossesAccepted(context));
  if (cannotBeElsewhere) return { answer: 'gone' };
  const reason =
    `${found.reason}; ${host}, where it was last seen, does not have it: it may have been moved before. ` +
    'If it was not, `berth losses accept` ends it';
  return { answer: 'unknown', reason };
}

/** {@link confirmMachine}, for a volume. */
export async function confirmVolume(
  context: ReconcileContext,
  ref: OwnerRef,
): Promise<Observation<ObservedVolume>> {
  const observedAt = context.clock.now();
  const found = await observe<Presence<ObservedVolume>>(
    context,
    async () =>
      context.driver.volumes?.get(ref) ?? { answer: 'unknown', reason: 'the platform has no volumes' },
  );
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
