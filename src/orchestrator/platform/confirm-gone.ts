import type { ObservedMachine, ObservedVolume, OwnerRef, Presence } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import { observe } from './call-platform.ts';
import type { Calling, Recording } from './context.ts';
import { areLossesAccepted, judgeHosts } from './loss-cap.ts';
import { isUnseen, type SharedListing, toHosts } from './shared-listing.ts';
import type { Observation } from './visibility.ts';

// A `gone` would be wrong in these cases, and each but the last is excluded:
//
// | the machine exists, although | excluded because |
// |---|---|
// | `get` asked the host that it moved to before the move, and the host that it left after it | a listing that begins later must omit it, too |
// | that listing began before the answer of `get`, as one that other callers wait for | `confirmAbsent` waits for the next one |
// | its host was renamed or left the configuration, so no host that answers ever had it | the host of its row must have answered |
// | it moved to a host that is silent | a driver answers `gone` only if no silent host can have it; for a removal, a listing must have shown it elsewhere while those hosts were silent |
// | the platform lists nothing, as with a revoked key | the listing must be trusted |
// | its create was answered a moment ago, or is still under way | see `mayAppearForMs`: the caller checks it with the locked row |
// | between two listings, a silent host answers, it moves there, and the host is silent again | no driver could see that: the drift detector removes it when the host answers, since its end was ordered |

/** The columns of a row that locate its machine. */
type Located = Pick<InstanceRecord, 'ownerRef' | 'host'>;

/**
 * Reads one machine. The answer is `gone` only if that is proved: the platform does not have it, the host that last had
 * it has answered, and a trusted listing that begins later does not show it. Otherwise the answer is `unknown`.
 *
 * A machine that `isBeingRemoved` must not wait for other hosts that are down for days. It is gone once its own host
 * does not have it and it cannot have moved to a silent host: a listing showed it while those hosts were silent already,
 * or the operator accepts losses.
 */
export async function confirmMachine(
  context: Recording & Calling,
  record: Located,
  { isBeingRemoved = false } = {},
): Promise<Observation<ObservedMachine>> {
  const { machines, clock } = context;
  const { ownerRef, host } = record;
  const observedAt = clock.now();
  let found = await readMachine(context, record);
  if (isBeingRemoved && found.answer === 'unknown' && found.hosts !== undefined && host !== null) {
    const { answered, silent } = toHosts(found.hosts);
    // Its own host does not have it.
    if (answered !== 'all' && answered.has(host)) {
      const hasNotMoved =
        machines.partialListings.has(ownerRef, silent) || (await areLossesAccepted(context));
      found = hasNotMoved
        ? { answer: 'gone' }
        : { ...found, reason: `${found.reason}; ${mayHaveMoved(host)}` };
    }
  }
  return { ...(await agreedByListing(found, ownerRef, machines)), observedAt };
}

function mayHaveMoved(host: string): string {
  return (
    `${host}, where it was last seen, does not have it: it may have been moved earlier. ` +
    'If it was not, `berth losses accept` ends it'
  );
}

/**
 * Reads the machine of a row, without the proof of a listing. `gone` is passed on only if the host that last had the
 * machine answered.
 */
export function readMachine(
  context: Recording & Calling,
  { ownerRef, host }: Located,
): Promise<Presence<ObservedMachine>> {
  return observe(context, async (): Promise<Presence<ObservedMachine>> => {
    const found = await context.driver.get(ownerRef);
    if (found.answer !== 'gone' || found.hosts === undefined) return found;
    if (!isUnseen(await judgeHosts(context, toHosts(found.hosts)), { host })) return found;
    return { answer: 'unknown', reason: `its last host ${host} is no longer a host of the platform` };
  });
}

/** Like {@link confirmMachine}, for a volume. */
export async function confirmVolume(
  context: Recording & Calling,
  ref: OwnerRef,
): Promise<Observation<ObservedVolume>> {
  const observedAt = context.clock.now();
  const found = await observe<Presence<ObservedVolume>>(
    context,
    async () =>
      context.driver.volumes?.get(ref) ?? { answer: 'unknown', reason: 'the platform has no volumes' },
  );
  return { ...(await agreedByListing(found, ref, context.volumes)), observedAt };
}

async function agreedByListing<T>(
  found: Presence<T>,
  ref: OwnerRef,
  listing: Pick<SharedListing<{ ref: OwnerRef }>, 'confirmAbsent'> | undefined,
): Promise<Presence<T>> {
  if (found.answer !== 'gone') return found;
  const doubt =
    listing === undefined ? 'the platform cannot list what it has' : await listing.confirmAbsent(ref);
  return doubt === undefined ? found : { answer: 'unknown', reason: doubt };
}
