import { createHash } from 'node:crypto';
import type { InstanceRecord } from '../model/records.ts';
import { getInstance } from '../model/rows.ts';
import type { Store } from '../model/store.ts';
import { toInstance } from './transition.ts';

/** The reply to `GET /instances/{id}`, ready to be written. */
export interface PreparedReply {
  readonly id: string;
  readonly accountId: string;
  /** The body is a string, since a buffer is several objects, and each poll would load them from memory. */
  readonly body: string;
  /** Equal if and only if the bodies are equal. */
  readonly etag: string;
}

interface CachedReply extends PreparedReply {
  readonly version: number;
}

/** Marks a destroyed instance. An older version must not be cached again. */
interface Destroyed {
  readonly body: undefined;
  readonly version: number;
}

type CacheEntry = CachedReply | Destroyed;

const DEFAULT_CAPACITY = 200_000;

/**
 * O: Instances, rule 2: the polled read "must be fast, cheap and accurate". Caches replies: a commit of any process
 * prepares them; on a miss they are made from the store. Only the store can prove that an instance does not exist. The
 * cache is not used while commits of other processes may be missed.
 */
export class PolledReads {
  readonly #store: Store;
  readonly #capacity: number;
  readonly #cached = new Map<string, CacheEntry>();
  readonly #unsubscribe: () => void;
  /** The function is bound once: each poll calls it, and the store for requests resolves a member at each access. */
  readonly #isFeedLive: () => boolean;
  /** Counts evictions of destroyed instances, and clears of the cache. */
  #evictions = 0;

  constructor(store: Store, capacity = DEFAULT_CAPACITY) {
    this.#store = store;
    this.#capacity = capacity;
    this.#isFeedLive = store.isCommitFeedLive.bind(store);
    this.#unsubscribe = store.subscribe({
      instancesChanged: (records) => this.#apply(records),
      commitsMissed: () => this.#clear(),
    });
  }

  /** The cached reply of an instance. Undefined if it is not cached; the instance may exist. */
  cached(id: string): PreparedReply | undefined {
    const cached = this.#isFeedLive() ? this.#cached.get(id) : undefined;
    return cached?.body === undefined ? undefined : cached;
  }

  /**
   * The reply for an instance of the account.
   *
   * @throws {ApiError} `not_found`, only if the store has no such instance
   */
  async get(accountId: string, id: string): Promise<PreparedReply> {
    const cached = this.cached(id);
    if (cached?.accountId === accountId) return cached;
    const evictionsBefore = this.#evictions;
    const record = await getInstance(this.#store.read.instances, accountId, id);
    const reply = prepareReply(record);
    // The row may be older than a commit that arrived meanwhile. `#put` detects that only if nothing was evicted.
    if (this.#evictions === evictionsBefore) this.#put(id, reply);
    return reply;
  }

  /**
   * The bodies of instances in the order of `ids`, none older than the answer of {@link get}. Destroyed instances are
   * left out.
   */
  async bodiesOf(ids: readonly string[]): Promise<string[]> {
    /** Rows read from the store. Null if there is no such row. */
    const read = new Map<string, CacheEntry | null>();
    for (;;) {
      // Start over each time: during the read, other replies may have changed or been evicted.
      const isLive = this.#isFeedLive();
      const bodies: string[] = [];
      const missing: string[] = [];
      for (const id of ids) {
        const entry = newer(isLive ? this.#cached.get(id) : undefined, read.get(id));
        if (entry === undefined) missing.push(id);
        else if (entry?.body !== undefined) bodies.push(entry.body);
      }
      if (missing.length === 0) return bodies;
      await this.#readMissing(missing, read);
    }
  }

  async #readMissing(missing: readonly string[], read: Map<string, CacheEntry | null>): Promise<void> {
    const evictionsBefore = this.#evictions;
    const records = await this.#store.read.instances.byIds(missing);
    for (const id of missing) read.set(id, null);
    for (const record of records) {
      const entry = toEntry(record);
      read.set(record.id, entry);
      if (this.#evictions === evictionsBefore) this.#put(record.id, entry);
    }
  }

  close(): void {
    this.#unsubscribe();
  }

  #apply(records: readonly InstanceRecord[]): void {
    for (const record of records) this.#put(record.id, toEntry(record));
  }

  #clear(): void {
    this.#evictions++;
    this.#cached.clear();
  }

  /** Keeps the newer version, since commits of several processes may arrive out of order. */
  #put(id: string, cached: CacheEntry): void {
    const known = this.#cached.get(id);
    if (known !== undefined && known.version >= cached.version) return;
    this.#cached.delete(id);
    const oldest = this.#cached.size >= this.#capacity ? this.#cached.keys().next().value : undefined;
    if (oldest !== undefined) {
      if (this.#cached.get(oldest)?.body === undefined) this.#evictions++;
      this.#cached.delete(oldest);
    }
    this.#cached.set(id, cached);
  }
}

/** The newer one of the cached and the read entry. Undefined if neither is known. */
function newer(
  cached: CacheEntry | undefined,
  read: CacheEntry | null | undefined,
): CacheEntry | null | undefined {
  if (cached === undefined || !read) return cached ?? read;
  return cached.version < read.version ? read : cached;
}

function toEntry(record: InstanceRecord): CacheEntry {
  return record.status === 'DESTROYED' ? { body: undefined, version: record.version } : prepareReply(record);
}

function prepareReply(record: InstanceRecord): CachedReply {
  const { id, accountId, version } = record;
  const body = JSON.stringify(toInstance(record));
  return { id, accountId, body, etag: toEtag(body), version };
}

/** A strong validator of exactly these bytes. */
export function toEtag(bytes: Buffer | string): string {
  // The parts are joined: a template literal would keep the whole digest and a chain of strings for each of 100,000
  // replies.
  return ['"', createHash('sha256').update(bytes).digest().toString('base64url', 0, 16), '"'].join('');
}
