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

interface Kept {
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
  readonly #kept = new Map<string, Kept>();
  readonly #unsubscribe: () => void;
  /** Counts what was forgotten, be it that an instance is destroyed. */
  #forgotten = 0;

  constructor(store: Store, capacity = DEFAULT_CAPACITY) {
    this.#store = store;
    this.#capacity = capacity;
    this.#unsubscribe = store.subscribe({
      instancesChanged: (records) => this.#apply(records),
      commitsMissed: () => this.#forget(),
    });
  }

  /** What is kept of an instance that is not destroyed; undefined says nothing about whether it exists. */
  kept(id: string): PreparedReply | undefined {
    return this.#store.isCommitFeedLive() ? this.#kept.get(id)?.reply : undefined;
  }

  /** @throws {ApiError} `not_found`, from the store's own answer. */
  async get(accountId: string, id: string): Promise<PreparedReply> {
    const kept = this.kept(id);
    if (kept?.accountId === accountId) return kept;
    const forgottenBefore = this.#forgotten;
    const record = await getInstance(this.#store.read.instances, accountId, id);
    const reply = prepareReply(record);
    // What was read may be older than what was told meanwhile; that can only be seen if nothing was forgotten.
    if (this.#forgotten === forgottenBefore) this.#keep(id, { reply, version: record.version });
    return reply;
  }

  close(): void {
    this.#unsubscribe();
  }

  #apply(records: readonly InstanceRecord[]): void {
    for (const record of records) {
      const reply = record.status === 'DESTROYED' ? undefined : prepareReply(record);
      this.#keep(record.id, { reply, version: record.version });
    }
  }

  #forget(): void {
    this.#forgotten++;
    this.#kept.clear();
  }

  /** Commits of several processes may be told in another order than they were made in. */
  #keep(id: string, kept: Kept): void {
    const known = this.#kept.get(id);
    if (known !== undefined && known.version >= kept.version) return;
    this.#kept.delete(id);
    const oldest = this.#kept.size >= this.#capacity ? this.#kept.keys().next().value : undefined;
    if (oldest !== undefined) {
      if (this.#kept.get(oldest)?.reply === undefined) this.#forgotten++;
      this.#kept.delete(oldest);
    }
    this.#kept.set(id, kept);
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
