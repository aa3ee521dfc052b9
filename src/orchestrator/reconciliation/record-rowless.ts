import { inSlices } from '../../ports/in-slices.ts';
import type { ObservedMachine, ObservedVolume, OwnerRef } from '../model/platform-driver.ts';
import { rowShownAs } from '../model/rows.ts';
import type { ResourceKind } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';
import type { Judge } from '../platform/shared-listing.ts';
import type { Seen } from '../platform/sightings.ts';
import { toSighting } from './rowless.ts';

type Deps = Pick<ReconcileContext, 'store' | 'driver' | 'installationId' | 'otherPlatforms' | 'sightings'>;

/**
 * Also records the resources of a listing that have no row, so that their ids read 503 from then on. Most listings only
 * prove that some resource is gone: the next round restores the rows. `hasRow` may be false for a resource with a row.
 */
export function recordingRowless<T extends ObservedMachine | ObservedVolume>(
  deps: Deps,
  kind: ResourceKind,
  judge: Judge<T>,
  hasRow: (ref: OwnerRef) => boolean = () => false,
): Judge<T> {
  /** The resources of the last listing that were no news. */
  let known: ReadonlySet<OwnerRef> = new Set();
  return async (listing, begunAt) => {
    const isTrusted = await judge(listing, begunAt);
    if (listing.answer !== 'listed') return isTrusted;
    const before = known;
    const still = new Set<OwnerRef>();
    const seen: Seen[] = [];
    for await (const slice of inSlices(listing.items))
      for (const resource of slice) {
        const { ref } = resource;
        if (hasRow(ref)) continue;
        const news = before.has(ref) ? undefined : await newsOf(deps, kind, resource);
        if (news === undefined) still.add(ref);
        else seen.push(news);
      }
    await deps.sightings.record(seen);
    known = still;
    return isTrusted;
  };
}

/** The sighting of a resource without a row. Undefined if it has one, is removed, or has been recorded. */
async function newsOf(
  deps: Deps,
  kind: ResourceKind,
  resource: ObservedMachine | ObservedVolume,
): Promise<Seen | undefined> {
  const { read } = deps.store;
  const sighting = toSighting(deps, kind, resource, {});
  if (sighting === undefined || deps.sightings.since(sighting) !== undefined) return undefined;
  const isOwned =
    (await rowShownAs(read, kind, resource.ref)) !== null ||
    (await read.attempts.byRef(resource.ref)) !== null;
  return isOwned ? undefined : sighting;
}
