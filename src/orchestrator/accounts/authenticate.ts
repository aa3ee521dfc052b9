import { hash } from 'node:crypto';
import { ApiError } from '../../contract/errors.ts';
import { bearerToken, digestSecret } from '../../keys/api-key.ts';
import { KeyUses } from '../../keys/key-uses.ts';
import type { Clock } from '../../ports/clock.ts';
import type { RequestedBy } from '../model/history.ts';
import type { AccountRecord } from '../model/records.ts';
import type { Reader, Store, Transaction } from '../model/store.ts';

/** The owner of a credential. */
export interface Owner {
  accountId: string;
  /** Null for a password, or for the key from the environment. */
  keyId: string | null;
  /** The kind of the credential, or of the one that its token was obtained with. */
  origin: 'key' | 'password' | 'environment';
}

/** The account and the credential behind a request. */
export interface Principal extends Owner {
  /** The digest of the credential itself, or for a token that of the credential it was obtained with. */
  digest: Buffer;
  /** In milliseconds since the epoch. */
  expiresAt: number | null;
}

/** The credential is revoked or expired, or its account is closed. */
interface Refused extends Owner {
  isRefused: true;
}

/** A refusal of a known credential, such as a revoked key. */
export class CredentialRefused extends ApiError {
  /** The owner, for the log only. */
  readonly owner: Owner;

  constructor(owner: Owner) {
    super('unauthorized', NOT_VALID);
    this.owner = owner;
  }
}

/** How long a credential is cached without a check of the store: one that another process revoked works at most this long. */
const RECHECK_AFTER_MS = 1_000;
const MAX_REMEMBERED = 10_000;
const NOT_VALID = 'The credential is not valid.';

/**
 * O: Authentication: bearer keys, several valid at once, revocable, and short-lived tokens. A credential is looked up
 * by its SHA-256 and cached for one second. A commit of this process that ends credentials empties the cache.
 */
export class Authenticator {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #environmentKey: { digest: Buffer; accountId: string } | undefined;
  readonly #remembered = new Map<string, { valid: Principal; checkedAt: number }>();
  readonly #uses = new KeyUses();
  readonly #unsubscribe: () => void;
  /** Counts the times that the cache was emptied. */
  #emptied = 0;

  constructor(deps: {
    store: Store;
    clock: Clock;
    environmentKey?: { digest: Buffer; accountId: string } | undefined;
  }) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#environmentKey = deps.environmentKey;
    const empty = (): void => {
      this.#emptied++;
      this.#remembered.clear();
    };
    this.#unsubscribe = deps.store.subscribe({ credentialsEnded: empty, commitsMissed: empty });
  }

  close(): void {
    this.#unsubscribe();
  }

  /** The principal of a credential that was valid within the last second. Never reads the store. */
  remembered(authorization: string | undefined): Principal | undefined {
    const token = bearerToken(authorization);
    if (token === undefined) return undefined;
    const entry = this.#remembered.get(hash('sha256', token, 'base64'));
    if (entry === undefined) return undefined;
    const now = this.#clock.now();
    const isFresh = now - entry.checkedAt < RECHECK_AFTER_MS && !hasExpired(entry.valid, now);
    return isFresh ? entry.valid : undefined;
  }

  /**
   * Checks a credential in the store.
   *
   * @throws {ApiError} `unauthorized`, with the same text for every reason
   */
  async authenticate(authorization: string | undefined): Promise<Principal> {
    const token = bearerToken(authorization);
    if (token === undefined)
      throw new ApiError(
        'unauthorized',
        authorization === undefined ? 'Send "Authorization: Bearer <API_KEY>".' : NOT_VALID,
      );
    const digest = digestSecret(token);
    const id = digest.toString('base64');
    const now = this.#clock.now();
    const emptied = this.#emptied;
    const valid = await findValid(this.#store.read, digest, now, this.#environmentKey);
    if (valid === undefined || 'isRefused' in valid) {
      this.#remembered.delete(id);
      throw valid === undefined ? new ApiError('unauthorized', NOT_VALID) : new CredentialRefused(valid);
    }
    if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear();
    // A credential that ended during the read is not cached.
    if (emptied === this.#emptied) this.#remembered.set(id, { valid, checkedAt: now });
    if (valid.keyId !== null) this.#uses.note(valid.keyId, now);
    return valid;
  }

  /** Writes the times of last use collected since the last call. If that fails, they are kept for the next call. */
  async recordUses(): Promise<void> {
    await this.#uses.write((uses) =>
      this.#store.transact(async (tx) => {
        for (const [keyId, at] of uses) await tx.credentials.recordKeyUse(keyId, at);
      }),
    );
  }
}

function hasExpired({ expiresAt }: { expiresAt: number | null }, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

async function findValid(
  read: Reader,
  digest: Buffer,
  now: number,
  environmentKey: { digest: Buffer; accountId: string } | undefined,
): Promise<Principal | Refused | undefined> {
  const direct = await findCredential(read, digest, now, environmentKey);
  if (direct !== undefined) return direct;
  const token = await read.credentials.tokenByDigest(digest);
  if (token === null || hasExpired(token, now)) return undefined;
  const parent = await findCredential(read, token.parentDigest, now, environmentKey);
  if (parent !== undefined && 'isRefused' in parent) return parent;
  if (parent !== undefined)
    return { ...parent, expiresAt: Math.min(token.expiresAt, parent.expiresAt ?? Number.POSITIVE_INFINITY) };
  const account = await read.credentials.accountById(token.accountId);
  if (account?.closedAt !== null || !isPasswordOf(account, token.parentDigest)) return undefined;
  const { accountId, parentDigest, expiresAt } = token;
  return { accountId, keyId: null, digest: parentDigest, origin: 'password', expiresAt };
}

function isPasswordOf(account: AccountRecord | null, digest: Buffer): boolean {
  return account?.passwordHash != null && digestSecret(account.passwordHash).equals(digest);
}

async function findCredential(
  read: Reader,
  digest: Buffer,
  now: number,
  environmentKey: { digest: Buffer; accountId: string } | undefined,
): Promise<Principal | Refused | undefined> {
  if (environmentKey?.digest.equals(digest)) {
    const { accountId } = environmentKey;
    const isOpen = (await read.credentials.accountById(accountId))?.closedAt === null;
    const owner = { accountId, keyId: null, origin: 'environment' } as const;
    return isOpen ? { ...owner, digest, expiresAt: null } : { ...owner, isRefused: true };
  }
  const key = await read.credentials.keyByDigest(digest);
  if (key === null) return undefined;
  const owner = { accountId: key.accountId, keyId: key.id, origin: 'key' } as const;
  const isRefused = key.revokedAt !== null || hasExpired(key, now);
  return isRefused ? { ...owner, isRefused } : { ...owner, digest, expiresAt: key.expiresAt };
}

/**
 * The store for one requester. Its transactions add `by` to each history event that is not a step. With `principal`,
 * each transaction first refuses a credential that has ended since it was authenticated, such as while a long body
 * arrived. It also keeps the account open, since a closed account could not delete new resources: the account is locked
 * before its rows.
 */
export function onBehalfOf(
  { store, clock }: { store: Store; clock: Pick<Clock, 'now'> },
  by: RequestedBy,
  principal?: Principal,
): Store {
  const transact: Store['transact'] = (body) =>
    store.transact(async (tx) => {
      if (principal !== undefined) await assertHasAccess(tx, principal, clock.now());
      const { history } = tx;
      const named: Transaction['history'] = {
        ...history,
        moved: (event) => history.moved({ ...event, by }),
        requested: (event) => history.requested({ ...event, by }),
      };
      return body({ ...tx, history: named });
    });
  return { ...store, transact };
}

/**
 * Refuses a credential that has ended, and keeps its account open until the transaction ends.
 *
 * @throws {ApiError} `unauthorized`
 */
export async function assertHasAccess(
  { credentials, accountUse }: Pick<Transaction, 'credentials' | 'accountUse'>,
  principal: Principal,
  now: number,
): Promise<void> {
  await accountUse.keepOpen(principal.accountId);
  if (hasExpired(principal, now) || !(await hasAccess(credentials, principal)))
    throw new ApiError('unauthorized', NOT_VALID);
}

async function hasAccess(
  credentials: Transaction['credentials'],
  { accountId, origin, digest }: Principal,
): Promise<boolean> {
  if (origin === 'key') return (await credentials.keyByDigest(digest))?.revokedAt === null;
  const account = await credentials.accountById(accountId);
  if (account?.closedAt !== null) return false;
  return origin === 'environment' || isPasswordOf(account, digest);
}
