import { ApiError } from '../../contract/errors.ts';
import { withOverrides } from '../../ports/with-overrides.ts';
import { idOf } from '../model/attempt.ts';
import type { OwnerRef } from '../model/platform-driver.ts';
import type { Reader, Store } from '../model/store.ts';
import type { ResourceKind } from '../model/work.ts';

const RETRY_AFTER_SECONDS = 2;
/** The ids that this program gives out. */
const ID = /^(?:inst|vol)-[0-9a-f]{32}$/;

/** A resource with our tag whose row could not be restored. */
export interface UnadoptedResource {
  ref: OwnerRef;
  /** The unit that it uses, if its note says so. */
  placement?: { offerId: string; region: string };
  /** The storage that a volume uses, if its note says so. */
  storage?: { region: string; gb: number };
}

/**
 * Decides, for one platform, whether an id without a row may be answered 404. A database that was restored from a backup
 * lacks newer rows. So nothing is answered 404 before the platform's listing was compared with the database, nor while
 * the platform shows a resource of that id whose row could not be restored.
 */
export class NotFoundGuard {
  readonly #compared = new Set<ResourceKind>();
  readonly #unadopted: Record<ResourceKind, ReadonlySet<string>> = { instance: new Set(), volume: new Set() };
  /** Units taken by machines without a row, by offer and region. */
  #unclaimed: ReadonlyMap<string, number> = new Map();
  /** GB taken by volumes without a row, by region. */
  #unclaimedGb: ReadonlyMap<string, number> = new Map();
  /** How many of the last listing have no row, and are not known to be another installation's. Empty: none was swept. */
  readonly #withoutRow = new Map<ResourceKind, number>();
  #isRestored = false;
  #areUnadoptedSeen = false;

  /** From now on until it is recovered, the database is known to lack rows. */
  restored(): void {
    this.#isRestored = true;
  }

  /** Every resource of ours on the platform has its row again. */
  recovered(): void {
    this.#isRestored = false;
  }

  /** While it is true, no resource counts as an orphan. */
  get isRestored(): boolean {
    return this.#isRestored;
  }

  /** Why a resource of ours may have no row, for the log. */
  get whyRowless(): string {
    return this.#isRestored ? 'it is younger than the backup' : 'the database had lost it';
  }

  /** A trusted listing was compared with the database; `unadopted`: the listed resources without a row. */
  compared(kind: ResourceKind, unadopted: readonly UnadoptedResource[]): void {
    this.listed(kind, unadopted);
    this.#compared.add(kind);
  }

  /** The same for a listing that may be incomplete. */
  listed(kind: ResourceKind, unadopted: readonly UnadoptedResource[]): void {
    this.#unadopted[kind] = new Set(unadopted.map(({ ref }) => idOf(ref)));
    if (kind === 'volume') {
      const sums = new Map<string, number>();
      for (const { storage } of unadopted)
        if (storage !== undefined) sums.set(storage.region, (sums.get(storage.region) ?? 0) + storage.gb);
      this.#unclaimedGb = sums;
      return;
    }
    const unclaimed = new Map<string, number>();
    for (const { placement } of unadopted) {
      if (placement === undefined) continue;
      const key = `${placement.offerId} ${placement.region}`;
      unclaimed.set(key, (unclaimed.get(key) ?? 0) + 1);
    }
    this.#unclaimed = unclaimed;
  }

  /** A listing shows machines that have no row yet. */
  unadoptedSeen(): void {
    this.#areUnadoptedSeen = true;
  }

  /**
   * Whether the claims, with {@link unclaimedUnits}, cover every machine: each has its row, if it can be restored.
   */
  get areClaimsComplete(): boolean {
    return this.#compared.has('instance') || !(this.#isRestored || this.#areUnadoptedSeen);
  }

  /** Whether the claims, with {@link unclaimedStorageGb}, cover every volume. */
  get areStorageClaimsComplete(): boolean {
    return this.#compared.has('volume') || !this.#isRestored;
  }

  /** GB of a location that volumes without a row use. */
  unclaimedStorageGb(region: string): number {
    return this.#unclaimedGb.get(region) ?? 0;
  }

  /** Units of a placement that machines without a row use. */
  unclaimedUnits(offerId: string, region: string): number {
    return this.#unclaimed.get(`${offerId} ${region}`) ?? 0;
  }

  /** How many resources a listing showed that have no row, and had none that was pruned. */
  sweptWithoutRow(kind: ResourceKind, count: number): void {
    this.#withoutRow.set(kind, count);
  }

  /** Whether each resource of ours that the platform shows has its row: no row was lost that is not restored. */
  get areRowsComplete(): boolean {
    return (
      !this.#isRestored &&
      (['instance', 'volume'] as const).every(
        (kind) =>
          this.#compared.has(kind) && this.#unadopted[kind].size === 0 && this.#withoutRow.get(kind) === 0,
      )
    );
  }

  /** Whether the platform shows it and its row could not be restored. */
  isUnadopted(ref: OwnerRef): boolean {
    const id = idOf(ref);
    return this.#unadopted.instance.has(id) || this.#unadopted.volume.has(id);
  }

  /** Call it before the row is read, not after: only then both are about the same moment. */
  isProved(id: string): boolean {
    if (!ID.test(id)) return true;
    const kind = id.startsWith('vol-') ? 'volume' : 'instance';
    return this.#compared.has(kind) && !this.#unadopted[kind].has(id);
  }

  /** Whether a list of the rows may lack what a client knows of. */
  get isListComplete(): boolean {
    return !this.#isRestored || this.#compared.has('instance');
  }
}

/**
 * The store as requests use it: a missing row is 503, not 404, while it does not prove absence. O: a client takes a
 * 404 for DESTROYED. An id does not tell its platform: a row that is missing may be one of any platform. `others`: those that
 * another server compares with the database after a restore.
 */
export function guardNotFound(
  store: Store,
  guards: readonly NotFoundGuard[],
  others: readonly string[] = [],
): Store {
  const all: Certainty = {
    isProved: (id) => guards.every((guard) => guard.isProved(id)),
    get isListComplete() {
      return guards.every((guard) => guard.isListComplete);
    },
    others,
  };
  return withOverrides(store, {
    read: guardReads(store.read, all),
    transact: (body) => store.transact((tx) => body(guardReads(tx, all))),
  });
}

interface Certainty extends Pick<NotFoundGuard, 'isProved' | 'isListComplete'> {
  others: readonly string[];
}

function guardReads<Reads extends Pick<Reader, 'instances' | 'volumes' | 'marks'>>(
  reads: Reads,
  notFoundGuard: Certainty,
): Reads {
  const { instances, volumes, marks } = reads;
  /** @throws {ApiError} `unavailable` */
  const assertCertain = async <T>(isProved: boolean, read: () => Promise<T>): Promise<T> => {
    let isCertain = isProved;
    for (const other of notFoundGuard.others)
      if ((await marks.get(`restored_from:${other}`)) !== null) isCertain = false;
    const found = await read();
    if (isCertain || (found !== null && !Array.isArray(found))) return found;
    throw new ApiError(
      'unavailable',
      'The orchestrator has not yet compared its records with the platform; try again.',
      { retryAfterSeconds: RETRY_AFTER_SECONDS },
    );
  };
  const guarded: Partial<Reads> = {
    instances: withOverrides(instances, {
      byId: (id) => assertCertain(notFoundGuard.isProved(id), () => instances.byId(id)),
      page: (filter) => assertCertain(notFoundGuard.isListComplete, () => instances.page(filter)),
      list: (filter) => assertCertain(notFoundGuard.isListComplete, () => instances.list(filter)),
    }),
    volumes: withOverrides(volumes, {
      byId: (id) => assertCertain(notFoundGuard.isProved(id), () => volumes.byId(id)),
    }),
  } as Partial<Reads>;
  return withOverrides(reads, guarded);
}
