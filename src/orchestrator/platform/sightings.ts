import type { Clock } from '../../ports/clock.ts';
import type { Sighting } from '../model/sighting.ts';
import type { Store } from '../model/store.ts';
import type { Lease, ResourceKind } from '../model/work.ts';
import type { ReconcileOptions } from './options.ts';
import type { Listed } from './shared-listing.ts';

/** How often an unchanged sighting is written again, in milliseconds. */
const REFRESH_MS = 10 * 60_000;
/** Rows per transaction. */
const BATCH = 100;

interface Deps {
  store: Store;
  clock: Clock;
  platform: string;
  options: Pick<ReconcileOptions, 'restoreDoubtMs'>;
}

export type Seen = Omit<Sighting, 'platform' | 'since' | 'seenAt'>;

/**
 * The differences between the listings of one platform and the rows. They are stored, so they survive a restart and
 * every server has the same. Sales, the 404 rule, tombstone pruning, removal of leftovers and alarms depend on them.
 */
export class Sightings {
  readonly #deps: Deps;
  readonly #startedAt: number;
  #open = new Map<string, Sighting>();
  /** When the last two complete listings of each kind began. The last but one is null if there was only one. */
  readonly #complete = new Map<ResourceKind, readonly [lastButOne: number | null, last: number]>();
  /**
   * Whether the database was restored and is not reconciled yet. Rows are then missing, so no resource counts as an
   * orphan.
   */
  isRestored = false;
  /** Whether a server of another database writes to the platform: it issues ids that have no row here. */
  isTaken = false;
  /** Whether a listing showed machines without a row that are not recorded yet. */
  areUnrecorded = false;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
  }

  /** Reads the sightings of earlier processes and other servers. Rejects if the store does. */
  async load(): Promise<void> {
    const { store, platform } = this.#deps;
    const open = await store.read.sightings.list(platform);
    this.#open = new Map(open.map((sighting) => [toKey(sighting), sighting]));
  }

  of(wanted: Sighting['what']): Sighting[] {
    return [...this.#open.values()].filter(({ what }) => what === wanted);
  }

  /** The resources of one kind that have no row. */
  withoutRow(kind: ResourceKind): Sighting[] {
    return this.of('no_row').filter(({ resourceKind }) => resourceKind === kind);
  }

  /** When the difference was first seen, in milliseconds since the epoch. Undefined if it is not open. */
  since(key: Pick<Sighting, 'resourceKind' | 'what' | 'name'>): number | undefined {
    return this.#open.get(toKey({ platform: this.#deps.platform, ...key }))?.since;
  }

  /** Records the differences in a listing. An unchanged one that was recorded recently is not written again. */
  async record(seen: readonly Seen[]): Promise<void> {
    const { store, clock, platform } = this.#deps;
    const now = clock.now();
    const changed = seen.flatMap((one) => {
      const known = this.#open.get(toKey({ platform, ...one }));
      const sighting = { platform, ...one, since: known?.since ?? now, seenAt: now };
      const isKnown = known !== undefined && now - known.seenAt < REFRESH_MS && isSame(known, sighting);
      return isKnown ? [] : [sighting];
    });
    for (let begin = 0; begin < changed.length; begin += BATCH) {
      const batch = changed.slice(begin, begin + BATCH);
      await store.transact(async (tx) => {
        for (const sighting of batch) await tx.sightings.put(sighting);
      });
      for (const sighting of batch) this.#open.set(toKey(sighting), sighting);
    }
  }

  /** Records `seen` and closes all other sightings of that kind, except those on silent hosts. */
  async replace(
    { resourceKind, what }: Pick<Sighting, 'resourceKind' | 'what'>,
    seen: readonly Omit<Seen, 'resourceKind' | 'what'>[],
    silent: ReadonlySet<string>,
  ): Promise<void> {
    const names = new Set(seen.map(({ name }) => name));
    await this.record(seen.map((one) => ({ ...one, resourceKind, what })));
    const over = this.of(what).filter(
      (one) => one.resourceKind === resourceKind && !names.has(one.name) && !silent.has(one.host ?? ''),
    );
    await this.close(over);
  }

  /** Closes sightings whose resource has its row, is proved gone, or matches its row again. */
  async close(sightings: readonly Sighting[]): Promise<void> {
    for (let begin = 0; begin < sightings.length; begin += BATCH) {
      const batch = sightings.slice(begin, begin + BATCH);
      await this.#deps.store.transact(async (tx) => {
        for (const sighting of batch) await tx.sightings.remove(sighting);
      });
      for (const sighting of batch) this.#open.delete(toKey(sighting));
    }
  }

  /** Records that a listing was compared: each resource in it has its row or a sighting. */
  async compared(
    resourceKind: ResourceKind,
    { begunAt: beganAt, hosts, isComplete }: Pick<Listed<unknown>, 'begunAt' | 'hosts' | 'isComplete'>,
  ): Promise<void> {
    const { store, platform, clock } = this.#deps;
    const silentHosts = [...hosts.silent];
    const fact = { platform, resourceKind, beganAt, endedAt: clock.now(), isComplete, silentHosts };
    await store.transact((tx) => tx.sightings.putListing(fact));
    if (!isComplete) return;
    const [, last] = this.#complete.get(resourceKind) ?? [null, null];
    this.#complete.set(resourceKind, [last, beganAt]);
  }

  /** Records that the platform has no resources of that kind, so there is nothing to compare. */
  hasNone(kind: ResourceKind): void {
    this.#complete.set(kind, [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]);
  }

  /** Whether a complete listing of the kind was compared since this process started. */
  isCompared(kind: ResourceKind): boolean {
    return this.#complete.has(kind);
  }

  /** Whether complete listings of both kinds were compared. */
  get areCompared(): boolean {
    return this.isCompared('instance') && this.isCompared('volume');
  }

  /** Why a resource of this installation may have no row, for the log. */
  get whyRowIsMissing(): string {
    return this.isRestored ? 'it is younger than the backup' : 'the database had lost it';
  }

  /** Whether the claims and {@link unclaimedUnits} together cover every machine. */
  get areClaimsComplete(): boolean {
    return this.isCompared('instance') || !(this.isRestored || this.areUnrecorded);
  }

  /** Whether the claims and {@link unclaimedStorageGb} together cover every volume. */
  get areStorageClaimsComplete(): boolean {
    return this.isCompared('volume') || !this.isRestored;
  }

  /** GB of a region that volumes without a row use. */
  unclaimedStorageGb(region: string): number {
    return this.withoutRow('volume').reduce(
      (sum, { detail: { storage } }) => sum + (storage?.region === region ? storage.gb : 0),
      0,
    );
  }

  /** Units of an offer in a region that machines without a row use. */
  unclaimedUnits(offerId: string, region: string): number {
    return this.withoutRow('instance').filter(
      ({ detail: { placement } }) => placement?.offerId === offerId && placement.region === region,
    ).length;
  }

  /**
   * Rows that ended before this time need no tombstone, in milliseconds since the epoch. Two complete listings began
   * later and would have shown remaining resources, each resource of this installation on the platform has its row, and no
   * leftover waits for its removal. Null if no tombstone may be pruned.
   */
  get searchedUntil(): number | null {
    // A leftover without a problem is removed under the order of its row, which must not go before.
    const isAllRemoved = this.of('leftover').every(({ detail }) => detail.problem !== undefined);
    const isAllOwned = !this.isRestored && this.of('no_row').length === 0 && isAllRemoved;
    const [instances = null] = this.#complete.get('instance') ?? [];
    const [volumes = null] = this.#complete.get('volume') ?? [];
    return isAllOwned && instances !== null && volumes !== null ? Math.min(instances, volumes) : null;
  }

  /**
   * Whether a missing row proves that there is no resource. If a row was lost, a listing would have shown its resource
   * by now.
   */
  isAbsenceProved(kind: ResourceKind): boolean {
    const { clock, options } = this.#deps;
    if (this.isTaken) return false;
    const isDoubtOver = clock.now() - this.#startedAt >= options.restoreDoubtMs;
    return this.isCompared(kind) || (!this.isRestored && isDoubtOver);
  }

  /** Whether the rows include every instance that a client may know. */
  get isListComplete(): boolean {
    return !this.isTaken && (!this.isRestored || this.isCompared('instance'));
  }
}

function toKey({
  platform,
  resourceKind,
  what,
  name,
}: Pick<Sighting, 'platform' | 'resourceKind' | 'what' | 'name'>): string {
  return [platform, resourceKind, what, name].join(' ');
}

function isSame(one: Sighting, other: Sighting): boolean {
  return one.host === other.host && JSON.stringify(one.detail) === JSON.stringify(other.detail);
}

/**
 * Holds back the work of restored rows. After a restore, rows may be older than their machines. Work from the backup
 * waits until the resource was reconciled with the platform. All other work continues.
 */
export class RestoreHold {
  /** Rows of the backup that are not reconciled with the platform yet. */
  readonly instances = new Set<string>();
  areVolumesHeld = false;

  get areOver(): boolean {
    return this.instances.size === 0 && !this.areVolumesHeld;
  }

  /** Whether the work waits. A destroy waits only if it has a cookie from before the backup. */
  holds({ resourceKind, resourceId, kind, cookie }: Lease): boolean {
    if (kind === 'destroy' && cookie === null) return false;
    return resourceKind === 'instance' ? this.instances.has(resourceId) : this.areVolumesHeld;
  }
}

/**
 * The instance running at each address and port in the last listing of each platform. Two platforms may share one
 * address.
 */
export class RunningEndpoints {
  readonly #ids = new Map<string, ReadonlyMap<string, string>>();

  replace(platform: string, ids: ReadonlyMap<string, string>): void {
    this.#ids.set(platform, ids);
  }

  /** The instance of another platform that runs at this endpoint. */
  elsewhere(platform: string, subject: string): string | undefined {
    for (const [other, ids] of this.#ids) {
      const id = other === platform ? undefined : ids.get(subject);
      if (id !== undefined) return id;
    }
    return undefined;
  }
}
