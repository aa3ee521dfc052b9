import { createHash } from 'node:crypto';
import type { InstanceReader, Store } from '../ports/store.ts';
import type { InstanceRecord } from './instance-record.ts';
import { getInstance } from './read.ts';
import { toInstance } from './to-instance.ts';

/** The reply to `GET /instances/{id}`, ready to be written. */
export interface PreparedReply {
  readonly accountId: string;
  readonly bytes: Buffer;
  /** Equal if and only if the bytes are equal. */
  readonly etag: string;
}

const DEFAULT_CAPACITY = 200_000;

/**
 * O: Instances, rule 2: the polled read "must be fast, cheap and accurate". The bytes are prepared when an
 * instance is committed and kept in memory; one that is not kept is prepared from the store. What is kept
 * only ever says what an instance is: that there is none, only the store can say.
 */
export class PolledReads {
  readonly #instances: InstanceReader;
  readonly #capacity: number;
  readonly #kept = new Map<string, PreparedReply>();
  readonly #unsubscribe: () => void;
  #commits = 0;

  constructor(store: Store, capacity = DEFAULT_CAPACITY) {
    this.#instances = store.read.instances;
    this.#capacity = capacity;
    this.#unsubscribe = store.subscribe({
      instancesChanged: (records) => this.#follow(records),
    });
  }

  /** What is kept of an instance that is not destroyed; undefined says nothing about whether it exists. */
  kept(id: string): PreparedReply | undefined {
    return this.#kept.get(id);
  }

  /** @throws {ApiError} `not_found`, from the store's own answer. */
  async get(accountId: string, id: string): Promise<PreparedReply> {
    const kept = this.#kept.get(id);
    if (kept?.accountId === accountId) return kept;
    const commitsBefore = this.#commits;
    const record = await getInstance(this.#instances, accountId, id);
    const reply = prepareReply(record);
    // What was read may be older than what was committed meanwhile: then it is answered, but not kept.
    if (this.#commits === commitsBefore) this.#keep(id, reply);
    return reply;
  }

  close(): void {
    this.#unsubscribe();
  }

  #follow(records: readonly InstanceRecord[]): void {
    this.#commits++;
    for (const record of records) {
      this.#kept.delete(record.id);
      if (record.status !== 'DESTROYED') this.#keep(record.id, prepareReply(record));
    }
  }

  #keep(id: string, reply: PreparedReply): void {
    const oldest = this.#kept.size >= this.#capacity ? this.#kept.keys().next().value : undefined;
    if (oldest !== undefined) this.#kept.delete(oldest);
    this.#kept.set(id, reply);
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
