import { ApiError } from '../../contract/errors.ts';
import type { AccountUse, Transaction } from '../model/store.ts';

/** What each account may have at most; undefined: as much as there is. */
export interface Quotas {
  instances: number | undefined;
  volumes: number | undefined;
  storageGb: number | undefined;
  /** Tokens that have not expired. */
  liveTokens: number;
}

/** Sums of fractions of a GB may be off by so much. */
const ROUNDING_GB = 1e-6;

type Kind = keyof Quotas;

/** The name on the wire and in berth.yaml, and what a user is told of it. */
const kinds: Readonly<Record<Kind, { name: string; what: string; remedy: string }>> = {
  instances: { name: 'instances', what: 'instances', remedy: 'destroy one' },
  volumes: { name: 'volumes', what: 'volumes', remedy: 'delete one' },
  storageGb: { name: 'storage_gb', what: 'GB of volumes', remedy: 'delete a volume' },
  liveTokens: { name: 'live_tokens', what: 'tokens', remedy: 'use one until it expires' },
};

/**
 * Locks what the account has for the rest of the transaction, and refuses what would be more than it may have. Call it
 * before capacity is claimed: every transaction takes the two locks in that order.
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
  const asked = (Object.keys(added) as Kind[]).filter((kind) => quotas[kind] !== undefined);
  if (asked.length === 0) return;
  await tx.accountUse.lock(accountId);
  for (const kind of asked) {
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
    `The account may have ${limit} ${what} and has ${used}: ${remedy}, or ask the provider for a larger quota.`,
    { details: { quota: name, limit, used } },
  );
}
