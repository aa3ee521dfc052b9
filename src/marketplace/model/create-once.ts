import { createHash } from 'node:crypto';
import { DAY_MS } from '../../ports/clock.ts';
import { ApiError } from '../contract/errors.ts';

export interface IdempotencyRecord {
  userId: string;
  key: string;
  /** SHA-256 of the request. */
  requestDigest: Buffer;
  /** The resource that the request made. */
  resourceId: string;
  createdAt: number;
}

export interface IdempotencyReader {
  /**
   * The record of this key, if it is not older than `since`. In a transaction, the second of two requests with one key
   * waits here for the first.
   */
  find(of: Pick<IdempotencyRecord, 'userId' | 'key'>, since: number): Promise<IdempotencyRecord | null>;
}
export interface IdempotencyWriter extends IdempotencyReader {
  /** Also deletes the user's records that are older than `since`. */
  insert(record: IdempotencyRecord, since: number): Promise<void>;
}

const KEPT_MS = DAY_MS;

/** The oldest record that counts at `now`. */
export const keptSince = (now: number): number => now - KEPT_MS;

type Reads = { idempotency: IdempotencyReader };

/**
 * A create that is carried out once for its Idempotency-Key: the same key with the same body gives the same resource, in
 * its current state, for 24 hours. The key is written in the transaction that makes the resource.
 */
export class CreateOnce {
  readonly #of: Pick<IdempotencyRecord, 'userId' | 'key' | 'requestDigest'> | null;
  #isReplay = false;

  /** `key` undefined: the request has none. */
  constructor(userId: string, key: string | undefined, operation: string, request: object) {
    const requestDigest = createHash('sha256')
      .update(JSON.stringify([operation, request]))
      .digest();
    this.#of = key === undefined ? null : { userId, key, requestDigest };
  }

  /** Whether an earlier request with the key has made the resource. */
  get isReplay(): boolean {
    return this.#isReplay;
  }

  /** What an earlier request has made, or null. @throws {ApiError} IDEMPOTENCY_MISMATCH if it was another request */
  async earlier<T, Tx extends Reads>(
    read: Tx,
    now: number,
    load: (read: Tx, id: string) => Promise<T>,
  ): Promise<T | null> {
    this.#isReplay = false;
    if (this.#of === null) return null;
    const known = await read.idempotency.find(this.#of, keptSince(now));
    if (known === null) return null;
    if (!this.#of.requestDigest.equals(known.requestDigest))
      throw new ApiError(
        'IDEMPOTENCY_MISMATCH',
        'This Idempotency-Key was used with another request; use a new key.',
      );
    this.#isReplay = true;
    return load(read, known.resourceId);
  }

  /** Keeps the key of a resource that was made in this transaction. */
  async keep(
    tx: { idempotency: IdempotencyWriter },
    { id: resourceId, createdAt }: { id: string; createdAt: number },
  ): Promise<void> {
    if (this.#of !== null)
      await tx.idempotency.insert({ ...this.#of, resourceId, createdAt }, keptSince(createdAt));
  }
}

/** A create without a key. */
export const notOnce = new CreateOnce('', undefined, '', {});
