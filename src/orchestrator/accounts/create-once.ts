import { createHash } from 'node:crypto';
import { ApiError } from '../../contract/errors.ts';
import type { Transaction } from '../model/store.ts';

/** A requested create. */
export interface Asked {
  accountId: string;
  operation: 'createInstance' | 'createVolume';
  request: object;
  /** The value of the Idempotency-Key header. Undefined if there was none. */
  key: string | undefined;
}

export interface Created<Record> {
  record: Record;
  /** Whether an earlier request with the same Idempotency-Key made it. */
  isReplay: boolean;
}

/**
 * Makes a resource once: the same Idempotency-Key with the same body gives the same resource, in its current state, for
 * 24 hours. The key is written in the transaction that makes the resource.
 *
 * @throws {ApiError} `idempotency_mismatch` if the key was used for another request
 */
export async function createOnce<Record extends { id: string; createdAt: number }>(
  tx: Transaction,
  { accountId, operation, request, key }: Asked,
  find: (id: string) => Promise<Record | null>,
  make: () => Promise<Record>,
): Promise<Created<Record>> {
  if (key === undefined) return { record: await make(), isReplay: false };
  const requestDigest = createHash('sha256')
    .update(JSON.stringify([operation, request]))
    .digest();
  const earlier = await tx.idempotency.find(accountId, key);
  if (earlier === null) {
    const record = await make();
    await tx.idempotency.insert({
      accountId,
      key,
      requestDigest,
      resourceId: record.id,
      createdAt: record.createdAt,
    });
    return { record, isReplay: false };
  }
  if (!requestDigest.equals(earlier.requestDigest))
    throw new ApiError(
      'idempotency_mismatch',
      'This Idempotency-Key was used with another request; use a new key.',
    );
  const record = await find(earlier.resourceId);
  if (record === null) throw new Error(`idempotency record without its resource ${earlier.resourceId}`);
  return { record, isReplay: true };
}
