import { createHash } from 'node:crypto';
import { ApiError } from '../../contract/errors.ts';
import type { AccountUse } from '../model/claims.ts';
import type { Transaction } from '../model/store.ts';

/** The limits of each account. An undefined number is no limit. */
export interface Quotas {
  instances: number | undefined;
  volumes: number | undefined;
  storageGb: number | undefined;
  /** Tokens that have not expired. */
  liveTokens: number;
}

/** Tolerance for rounding errors in sums of GB. */
const ROUNDING_GB = 1e-6;

type Kind = keyof Quotas;

/** The name in the API, and in berth.yaml if it has a key there; and the parts of the message to the user. */
const kinds: Readonly<Record<Kind, { name: string; what: string; remedy: string }>> = {
  instances: { name: 'instances', what: 'instances', remedy: 'destroy one' },
  volumes: { name: 'volumes', what: 'volumes', remedy: 'delete one' },
  storageGb: { name: 'storage_gb', what: 'GB of volumes', remedy: 'delete a volume' },
  liveTokens: { name: 'live_tokens', what: 'tokens', remedy: 'use one until it expires' },
};

/**
 * Locks the account's use for the rest of the transaction, and refuses to exceed its quotas. Call it before capacity is
 * claimed, so that every transaction takes the two locks in the same order.
 *
 * @throws {ApiError} `quota_exceeded`
 */
export async function assertWithinQuotas(
  tx: Pick<Transaction, 'accountUse'>,
  quotas: Quotas,
  accountId: string,
  added: Partial<Record<Kind, number>>,
  now: number,
): Promise<void> {
  const limited = (Object.keys(added) as Kind[]).filter((kind) => quotas[kind] !== undefined);
  if (limited.length === 0) return;
  await tx.accountUse.lock(accountId);
  for (const kind of limited) {
    const limit = quotas[kind] ?? Number.POSITIVE_INFINITY;
    const used = await useOf(tx.accountUse, kind, accountId, now);
    if (used + (added[kind] ?? 0) > limit + ROUNDING_GB) throw exceeded(kind, { limit, used });
  }
}

function useOf(use: AccountUse, kind: Kind, accountId: string, now: number): Promise<number> {
  return kind === 'liveTokens' ? use.liveTokens(accountId, now) : use[kind](accountId);
}

function exceeded(kind: Kind, { limit, used }: { limit: number; used: number }): ApiError {
  const { name, what, remedy } = kinds[kind];
  return new ApiError(
    'quota_exceeded',
    `The quota of the account is ${limit} ${what}, and it has ${used}: ${remedy}, or ask the provider for a larger quota.`,
    { details: { quota: name, limit, used } },
  );
}

/** A requested create. */
export interface RequestedCreate {
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
  { accountId, operation, request, key }: RequestedCreate,
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
