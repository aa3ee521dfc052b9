import type { ObservedMachine, ObservedVolume, OwnerRef, Presence } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import { observe } from './call-platform.ts';
import type { ReconcileContext } from './context.ts';
import { areLossesAccepted, judgeHosts } from './loss-cap.ts';
import { isUnseen, type SharedListing, toHosts } from './shared-listing.ts';
import type { Observation } from './visibility.ts';

/**
 * Reads one machine. The answer is `gone` only if that is proved: `get` reports it, and a trusted listing that began
 * later agrees. Otherwise the answer is `unknown`. A new resource may be missing from both: see `mayAppearForMs`.
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
 * Like {@link confirmMachine}, for a machine that is being removed: a host that is down for days must not block deletes
 * on others. The machine is gone once its own host does not have it and it cannot have moved to a silent host: a
 * listing showed it while those hosts were silent already, or the operator accepts losses.
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

/** The columns of a row that locate its machine. */
type Located = Pick<InstanceRecord, 'ownerRef' | 'host'>;

export function readMachine(context: ReconcileContext, record: Located): Promise<Presence<ObservedMachine>> {
  return observe(context, () => askForMachine(context, record));
}

/**
 * Asks the driver for the machine of a row. `gone` is passed on only if the host that last had the machine answered.
 */
export async function askForMachine(
  context: ReconcileContext,
  { ownerRef, host }: Located,
): Promise<Presence<ObservedMachine>> {
  const found = await context.driver.get(ownerRef);
  if (found.answer !== 'gone' || found.hosts === undefined) return found;
  if (!isUnseen(await judgeHosts(context, toHosts(found.hosts)), { host })) return found;
  return { answer: 'unknown', reason: `its last host ${host} is no longer a host of the platform` };
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
    `${found.reason}; ${host}, where it was last seen, does not have it: it may have been moved earlier. ` +
    'If it was not, `berth losses accept` ends it';
  return { answer: 'unknown', reason };
}

/** Like {@link confirmMachine}, for a volume. */
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
  listing: Pick<SharedListing<{ ref: OwnerRef }>, 'confirmAbsent'> | undefined,
): Promise<Presence<T>> {
  if (found.answer !== 'gone') return found;
  const proof = await listing?.confirmAbsent(ref);
  if (proof === undefined) return { answer: 'unknown', reason: 'the platform cannot list what it has' };
  return proof.isProved ? found : { answer: 'unknown', reason: proof.reason };
}
