import type { InstanceStatus } from '../../contract/instance.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Endpoint, OwnerRef } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { Store } from '../model/store.ts';
import type { ReconcileOptions } from './options.ts';

/** What a row makes us expect of the platform. */
export interface ExpectedMachine {
  id: string;
  status: InstanceStatus;
  endpoint: Endpoint | null;
  /** When the row last changed, in milliseconds since the epoch. */
  since: number;
  version: number;
  /** See `PlatformResource`. */
  createOpenUntil: number | null;
}

/** A commit is told within seconds of being made; so many rows do not end meanwhile. */
const DESTROYED_KEPT = 10_000;

/** The live rows by owner ref, kept by following the commits. */
export class ExpectedMachines {
  readonly #store: Store;
  readonly #rows = new Map<OwnerRef, ExpectedMachine>();
  /** No older commit that is told later brings them back; the oldest first. */
  readonly #destroyed = new Set<OwnerRef>();
  readonly #unsubscribe: () => void;
  /** Whether something may have been committed that was not told. */
  #isStale = true;

  constructor(store: Store) {
    this.#store = store;
    this.#unsubscribe = store.subscribe({
      instancesChanged: (records) => {
        for (const record of records) this.#apply(record);
      },
      commitsMissed: () => {
        this.#isStale = true;
      },
    });
  }

  /**
   * Reads every live row, if what was told of them is not enough. What was live before, and is not read, has been
   * destroyed. Rejects if the store does.
   */
  async refresh(): Promise<void> {
    if (!this.#isStale && this.#store.isCommitFeedLive()) return;
    this.#isStale = false;
    try {
      await this.#load();
    } catch (error) {
      this.#isStale = true;
      throw error;
    }
  }

  get(ref: OwnerRef): ExpectedMachine | undefined {
    return this.#rows.get(ref);
  }

  entries(): IterableIterator<[OwnerRef, ExpectedMachine]> {
    return this.#rows.entries();
  }

  /** The row is destroyed, whatever was told of it. */
  forget(ref: OwnerRef): void {
    this.#rows.delete(ref);
    this.#destroyed.add(ref);
    const [oldest] = this.#destroyed;
    if (this.#destroyed.size > DESTROYED_KEPT && oldest !== undefined) this.#destroyed.delete(oldest);
  }

  close(): void {
    this.#unsubscribe();
  }

  async #load(): Promise<void> {
    const before = new Map(this.#rows);
    const records = await this.#store.read.instances.list({});
    for (const record of records) {
      before.delete(record.ownerRef);
      this.#apply(record);
    }
    for (const [ref, { version }] of before) if (this.#rows.get(ref)?.version === version) this.forget(ref);
  }

  /** Commits of several processes may be told in another order than they were made. */
  #apply(record: InstanceRecord): void {
    const { id, ownerRef, status, endpoint, updatedAt, version, createOpenUntil } = record;
    if (this.#destroyed.has(ownerRef)) return;
    const known = this.#rows.get(ownerRef);
    if (known !== undefined && known.version > version) return;
    if (status === 'DESTROYED') this.forget(ownerRef);
    else this.#rows.set(ownerRef, { id, status, endpoint, since: updatedAt, version, createOpenUntil });
  }
}

/**
 * Whether a row that last changed at `since` can be held against a listing that began at `moment`. One that is further
 * ahead than a lease lasts was written while a clock was wrong, and is held against each.
 */
export function changedBefore(
  since: number,
  moment: number,
  { clock, options }: { clock: Clock; options: Pick<ReconcileOptions, 'leaseMs'> },
): boolean {
  return since < moment || since > clock.now() + options.leaseMs;
}

/** Whether the platform must list the machine of such a row: it was seen there, and nobody is removing it. */
export function isExpected({ status, endpoint }: ExpectedMachine): boolean {
  switch (status) {
    case 'ONLINE':
    case 'STOPPING':
    case 'STOPPED':
      return true;
    case 'PROVISIONING':
      return endpoint !== null;
    default:
      return false;
  }
}
