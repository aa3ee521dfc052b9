import { z } from 'zod';
import { audit } from '../../operator-kit/audit.ts';
import type { Actor } from '../../operator-kit/model.ts';
import { inSlices } from '../../ports/in-slices.ts';
import { raiseFolded } from '../alarms/fold.ts';
import { idOf } from '../model/attempt.ts';
import type { ObservedMachine, ObservedVolume, OwnerRef, Presence } from '../model/platform-driver.ts';
import { readNote } from '../model/platform-resource.ts';
import { rowShownAs } from '../model/rows.ts';
import type { Sighting, SightingDetail } from '../model/sighting.ts';
import type { Transaction } from '../model/store.ts';
import type { ResourceKind } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { ISSUED_ID } from '../platform/not-found-guard.ts';
import type { Judge, Listed } from '../platform/shared-listing.ts';
import type { Seen } from '../platform/sightings.ts';

/** The outcome for a listed resource without a row. */
export type Adopted = 'adopted' | 'foreign' | Unadopted;

/**
 * The outcome of an operator's decision about a machine. `unknown`: the platform did not show it, so the order is
 * retried.
 */
export type OrphanOutcome = Adopted | 'released' | 'gone' | 'unknown';

export interface Unadopted extends SightingDetail {
  problem: string;
  /** Whether the note has everything that a row needs. If not, the resource may not be Berth's. */
  isWhole: boolean;
}

/** Accepts every note with an id. `readNote` checks the owner. */
export const anyNote = z.looseObject({ id: z.string() });

type WhoseContext = Pick<ReconcileContext, 'driver' | 'installationId' | 'otherPlatforms' | 'sightings'>;

const ROW_LOST =
  'the platform has a resource with our tag but no row, and the row cannot be restored: its id answers 503 until it can, ' +
  'or until the resource is proved gone. Create its account if that is missing; otherwise `berth orphans adopt`, `release` or `rm`';

/**
 * The sighting of a listed resource without a row. Undefined if it may belong to another installation, whose absence of
 * ids stays proved. If the platform keeps notes, that is also a resource without a note of this installation.
 */
function toSighting(
  { driver, installationId, otherPlatforms, sightings }: WhoseContext,
  resourceKind: ResourceKind,
  resource: ObservedMachine | ObservedVolume,
  detail: SightingDetail,
): Seen | undefined {
  const { ref, renamedTo: name = ref, host = null } = resource;
  const resourceId = idOf(ref);
  const { owner } = readNote(resource, installationId, anyNote, otherPlatforms);
  const mayBeOurs = owner === 'unknown' && (!driver.manifest.keepsNotes || sightings.isRestored);
  if (!ISSUED_ID.test(resourceId) || !(owner === 'ours' || mayBeOurs)) return undefined;
  return { resourceKind, what: 'no_row', name, ref, resourceId, host, detail };
}

/** The listed resources of one kind that have no row. */
export class ResourcesWithoutRow<T extends ObservedMachine | ObservedVolume> {
  readonly #context: ReconcileContext;
  readonly #kind: ResourceKind;
  readonly #adopt: (resource: T) => Promise<Adopted>;
  readonly #confirm: (sighting: Sighting) => Promise<Presence<unknown>>;
  readonly #foreign = new Set<OwnerRef>();
  #seen: Seen[] = [];

  /** `confirm` reads the resource of a sighting. Its `gone` is proved. */
  constructor(
    context: ReconcileContext,
    kind: ResourceKind,
    adopt: (resource: T) => Promise<Adopted>,
    confirm: (sighting: Sighting) => Promise<Presence<unknown>>,
  ) {
    this.#context = context;
    this.#kind = kind;
    this.#adopt = adopt;
    this.#confirm = confirm;
  }

  begin(): void {
    this.#seen = [];
  }

  /** Whether another Berth made the resource, or this one through another platform. */
  isForeign(resource: T): boolean {
    const { log, installationId, otherPlatforms } = this.#context;
    if (this.#foreign.has(resource.ref)) return true;
    if (readNote(resource, installationId, anyNote, otherPlatforms).owner !== 'foreign') return false;
    this.#foreign.add(resource.ref);
    log.debug({ ref: resource.ref }, 'this resource belongs to another installation');
    return true;
  }

  /**
   * Restores the row of a resource from its note, or else records that the row is missing. Returns whether the note is
   * incomplete, so that the resource may not be Berth's, and it is old enough to be an orphan.
   */
  async adopt(resource: T): Promise<boolean> {
    const { clock, options } = this.#context;
    const adopted = await this.#adopt(resource);
    if (adopted === 'foreign' || adopted === 'adopted') return false;
    const { isWhole, ...detail } = adopted;
    const sighting = toSighting(this.#context, this.#kind, resource, detail);
    if (sighting !== undefined) this.#seen.push(sighting);
    return !isWhole && clock.now() - resource.createdAt >= options.orphanGraceMs;
  }

  /**
   * Records the resources without a row. One that a listing omits is read again, and closed only if it is proved gone.
   */
  async end({ items, isTrusted }: Listed<T>): Promise<void> {
    const { sightings, store } = this.#context;
    await sightings.record(this.#seen);
    for (const sighting of sightings.withoutRow(this.#kind)) {
      const hasRow = (await rowShownAs(store.read, this.#kind, sighting.ref)) !== null;
      const isGone =
        !hasRow && isTrusted && !items.has(sighting.ref) && (await this.#confirm(sighting)).answer === 'gone';
      if (hasRow || isGone) await sightings.close([sighting]);
    }
    this.#alarm();
  }

  /** Raises the alarms for machines and volumes together, since both use the same kind of alarm. */
  #alarm(): void {
    const { alarms, platform, log, sightings } = this.#context;
    const describe = ({ detail: { problem = 'it has no row' } }: Sighting) => problem;
    const subjectOf = ({ ref }: Sighting) => ref;
    const fields = ({ ref, detail: { problem } }: Sighting) => ({ ref, problem });
    const kindOf = { kind: 'row_lost' as const, platform, text: ROW_LOST, subjectOf, describe, fields, log };
    const all = [...sightings.withoutRow('instance'), ...sightings.withoutRow('volume')];
    raiseFolded(alarms, kindOf, all, true);
  }
}

type Deps = Pick<ReconcileContext, 'store' | 'driver' | 'installationId' | 'otherPlatforms' | 'sightings'>;

/**
 * Also records the resources of a listing that have no row, so that their ids read 503 from then on. Most listings only
 * prove that some resource is gone: the next round restores the rows. `hasRow` may be false for a resource with a row.
 */
export function recordingMissingRows<T extends ObservedMachine | ObservedVolume>(
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

/** Adds an action of the server itself to the audit log. */
export async function auditByServer(
  { clock, alarms, platform }: Pick<ReconcileContext, 'clock' | 'alarms' | 'platform'>,
  tx: Pick<Transaction, 'audit'>,
  { action, subject, ...detail }: { action: string; subject: string; ref?: string },
): Promise<void> {
  const server: Actor = { name: alarms.server, source: 'server', address: null };
  await audit(tx, clock, server, { action, subject, detail: { platform, ...detail } });
}
