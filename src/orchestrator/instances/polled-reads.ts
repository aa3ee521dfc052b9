import { createHash } from 'node:crypto';
import type { InstanceRecord } from '../model/records.ts';
import { getInstance } from '../model/rows.ts';
import type { Store } from '../model/store.ts';
import { toInstance } from './list.ts';

/** The reply to `GET /instances/{id}`, ready to be written. */
export interface PreparedReply {
  readonly accountId: string;
  readonly bytes: Buffer;
  /** Equal if and only if the bytes are equal. */
  readonly etag: string;
}

interface CacheEntry {
  /** Undefined: the instance is destroyed; an older version must not be cached again. */
  readonly reply: PreparedReply | undefined;
  readonly version: number;
}

const DEFAULT_CAPACITY = 200_000;

/**
 * O: Instances, rule 2: the polled read "must be fast, cheap and accurate". A cache of replies: the bytes are
 * prepared when an instance is committed by any process; on a miss they are made from the store. The cache never
 * proves that an instance does not exist; only the store can. It is not used while commits of other processes may be
 * missed.
 */
export class PolledReads {
  readonly #store: Store;
  readonly #capacity: number;
  readonly #cached = new Map<string, CacheEntry>();
  readonly #unsubscribe: () => void;
  /** Counts evictions of destroyed instances, and clears. */
  #evictions = 0;

  constructor(store: Store, capacity = DEFAULT_CAPACITY) {
    this.#store = store;
    this.#capacity = capacity;
    this.#unsubscribe = store.subscribe({
      instancesChanged: (records) => this.#apply(records),
      commitsMissed: () => this.#clear(),
    });
  }

  /** The cached reply of an instance; undefined says nothing about whether it exists. */
  cached(id: string): PreparedReply | undefined {
    return this.#store.isCommitFeedLive() ? this.#cached.get(id)?.reply : undefined;
  }

  /** @throws {ApiError} `not_found`, from the store's own answer. */
  async get(accountId: string, id: string): Promise<PreparedReply> {
    const cached = this.cached(id);
    if (cached?.accountId === accountId) return cached;
    const evictionsBefore = this.#evictions;
    const record = await getInstance(this.#store.read.instances, accountId, id);
    const reply = prepareReply(record);
    // The row may be older than a commit that arrived meanwhile; that shows only if nothing was evicted.
    if (this.#evictions === evictionsBefore) this.#put(id, { reply, version: record.version });
    return reply;
  }

  close(): void {
    this.#unsubscribe();
  }

  #apply(records: readonly InstanceRecord[]): void {
    for (const record of records) {
      const reply = record.status === 'DESTROYED' ? undefined : prepareReply(record);
      this.#put(record.id, { reply, version: record.version });
    }
  }

  #clear(): void {
    this.#evictions++;
    this.#cached.clear();
  }

  /** Commits of several processes may arrive out of order. */
  #put(id: string, cached: CacheEntry): void {
    const known = this.#cached.get(id);
    if (known !== undefined && known.version >= cached.version) return;
    this.#cached.delete(id);
    const oldest = this.#cached.size >= this.#capacity ? this.#cached.keys().next().value : undefined;
    if (oldest !== undefined) {
      if (this.#cached.get(oldest)?.reply === undefined) this.#evictions++;
      this.#cached.delete(oldest);
    }
    this.#cached.set(id, cached);
  }
}

function prepareReply(record: InstanceRecord): PreparedReply {
  const bytes = Buffer.from(JSON.stringify(toInstance(record)));
  return { accountId: record.accountId, bytes, etag: toEtag(bytes) };
}

/** A strong validator of exactly these bytes. */
export function toEtag(bytes: Buffer | string): string {
  return `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
}
