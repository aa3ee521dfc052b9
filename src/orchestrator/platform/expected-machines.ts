import type { InstanceStatus } from '../../contract/instance.ts';
import type { Clock } from '../../ports/clock.ts';
import { eachLiveInstance } from '../instances/list.ts';
import type { Endpoint, OwnerRef } from '../model/platform-driver.ts';
import { CREATE_IS_OPEN } from '../model/platform-resource.ts';
import type { LiveInstance, Store } from '../model/store.ts';
import type { ReconcileOptions } from './options.ts';

/** The state of a machine according to its row. */
export interface ExpectedMachine {
  id: string;
  status: InstanceStatus;
  /** Only the compared fields, to save memory: there is one object for each row. */
  endpoint: Pick<Endpoint, 'publicIp' | 'sshPort'> | null;
  /** When the row last changed, in milliseconds since the epoch. */
  since: number;
  version: number;
  /** See `PlatformResource`. */
  createOpenUntil: number | null;
  /** See `InstanceRecord`. */
  host: string | null;
}

/**
 * Number of destroyed rows that are remembered. A commit arrives within seconds, and fewer rows than this are destroyed
 * in that time.
 */
const DESTROYED_KEPT = 10_000;

/** The live rows of one platform by owner ref, updated from the commit feed. */
export class ExpectedMachines {
  readonly #store: Store;
  readonly #platform: string;
  readonly #rows = new Map<OwnerRef, ExpectedMachine>();
  /** The ref of each row, by id. Another attempt or an adoption changes it. */
  readonly #refs = new Map<string, OwnerRef>();
  /** The ids of destroyed rows, oldest first. They keep a late commit from restoring a destroyed row. */
  readonly #destroyed = new Set<string>();
  readonly #unsubscribe: () => void;
  /** Whether commits may have been missed. */
  #isStale = true;

  constructor(store: Store, platform: string) {
    this.#store = store;
    this.#platform = platform;
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
   * Reads every live row if commits may have been missed. A known row that is not read again has been destroyed.
   * Rejects if the store does.
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

  /** Removes a destroyed row. Older commits that arrive later do not restore it. */
  forget(ref: OwnerRef, id = this.#rows.get(ref)?.id): void {
    if (id === undefined) return;
    this.#refs.delete(id);
    if (this.#rows.get(ref)?.id === id) this.#rows.delete(ref);
    this.#destroyed.add(id);
    const [oldest] = this.#destroyed;
    if (this.#destroyed.size > DESTROYED_KEPT && oldest !== undefined) this.#destroyed.delete(oldest);
  }

  close(): void {
    this.#unsubscribe();
  }

  async #load(): Promise<void> {
    const before = new Map(this.#rows);
    for await (const instance of eachLiveInstance(this.#store.read.instances)) {
      before.delete(instance.ownerRef);
      this.#apply(instance);
    }
    for (const [ref, { version }] of before) if (this.#rows.get(ref)?.version === version) this.forget(ref);
  }

  /** Applies a commit. Commits of several processes may arrive out of order. */
  #apply(instance: LiveInstance): void {
    if (instance.platform !== this.#platform) return;
    const { id, ownerRef, status, updatedAt: since, version, createOpenUntil, host } = instance;
    if (this.#destroyed.has(id)) return;
    const before = this.#refs.get(id);
    const known = before === undefined ? undefined : this.#rows.get(before);
    if (known?.id === id && known.version > version) return;
    if (status === 'DESTROYED') {
      this.forget(ownerRef, id);
      return;
    }
    if (before !== undefined && before !== ownerRef && known?.id === id) this.#rows.delete(before);
    this.#refs.set(id, ownerRef);
    const { endpoint: shown } = instance;
    const endpoint = shown && { publicIp: shown.publicIp, sshPort: shown.sshPort };
    this.#rows.set(ownerRef, { id, status, endpoint, since, version, createOpenUntil, host });
  }
}

/**
 * Whether a row that last changed at `since` can be compared with a listing that began at `moment`. A time more than a
 * lease ahead was written by a wrong clock; such a row is always compared.
 */
export function changedBefore(
  since: number,
  moment: number,
  { clock, options }: { clock: Clock; options: Pick<ReconcileOptions, 'leaseMs'> },
): boolean {
  return since < moment || since > clock.now() + options.leaseMs;
}

/** Whether a listing must contain the machine of the row: the platform has shown it, and it is not being removed. */
export function isExpected({ status, endpoint, createOpenUntil }: ExpectedMachine): boolean {
  switch (status) {
    case 'ONLINE':
    case 'STOPPING':
    case 'STOPPED':
      return true;
    case 'PROVISIONING':
      return endpoint !== null || createOpenUntil !== CREATE_IS_OPEN;
    default:
      return false;
  }
}
