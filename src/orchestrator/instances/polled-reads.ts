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
  /** Undefined: the instance is destroyed; what is older is not kept again. */
  readonly reply: PreparedReply | undefined;
  readonly version: number;
}

const DEFAULT_CAPACITY = 200_000;

/**
 * O: Instances, rule 2: the polled read "must be fast, cheap and accurate". The bytes are prepared when an
 * instance is committed, by whatever process, and kept in memory; one that is not kept is prepared from the store.
 * What is kept only ever says what an instance is: that there is none, only the store can say. Nothing kept is
 * answered while commits of other processes may go unheard.
 */
export class PolledReads {
  readonly #store: Store;
  readonly #capacity: number;
  readonly #cached = new Map<string, CacheEntry>();
  readonly #unsubscribe: () => void;
  /** Counts what was forgotten, be it that an instance is destroyed. */
  #evictions = 0;

  constructor(store: Store, capacity = DEFAULT_CAPACITY) {
    this.#store = store;
    this.#capacity = capacity;
    this.#unsubscribe = store.subscribe({
      instancesChanged: (records) => this.#apply(records),
      commitsMissed: () => this.#clear(),
    });
  }

  /** What is kept of an instance that is not destroyed; undefined says nothing about whether it exists. */
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
    // What was read may be older than what was told meanwhile; that can only be seen if nothing was forgotten.
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

  /** Commits of several processes may be told in another order than they were made in. */
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
