import { bearerToken, digestSecret } from '../../keys/api-key.ts';
import { KeyUses } from '../../keys/key-uses.ts';
import type { Clock } from '../../ports/clock.ts';
import { ApiError } from '../contract/errors.ts';
import type { Caller } from '../model/own-rows.ts';
import type { ApiKeyRecord } from '../model/people.ts';
import { REVOKED_KEYS } from '../model/people-store.ts';
import type { Store } from '../model/store.ts';

/** How long a cached key is used without a check of the store. One that another process revoked works at most this long. */
const RECHECK_AFTER_MS = 1_000;
const MAX_REMEMBERED = 10_000;

const NOT_VALID = 'The API key is not valid.';

type AuthenticatorStore = Pick<Store, 'read' | 'transact' | 'watch'>;
type Key = Pick<ApiKeyRecord, 'id' | 'userId' | 'expiresAt'>;
/** A revoked or expired key. */
type Refused = Key & { isRefused: true };

/** The refusal of a revoked or expired key. */
export class KeyRefused extends ApiError {
  /** The owner of the key, for the log only. */
  readonly owner: Pick<ApiKeyRecord, 'id' | 'userId'>;

  constructor(owner: Pick<ApiKeyRecord, 'id' | 'userId'>) {
    super('UNAUTHORIZED', NOT_VALID);
    this.owner = owner;
  }
}

/** M: Authentication. Keys are looked up by the SHA-256 of the whole key. A reported revocation empties the cache. */
export class Authenticator {
  readonly #store: AuthenticatorStore;
  readonly #clock: Clock;
  readonly #remembered = new Map<string, { key: Key; checkedAt: number }>();
  readonly #uses = new KeyUses();
  readonly #unwatch: () => void;
  /** Counts the times that the cache was emptied. */
  #emptied = 0;

  constructor({ store, clock }: { store: AuthenticatorStore; clock: Clock }) {
    this.#store = store;
    this.#clock = clock;
    this.#unwatch = store.watch(REVOKED_KEYS, () => {
      this.#emptied++;
      this.#remembered.clear();
    });
  }

  close(): void {
    this.#unwatch();
  }

  /** @throws {ApiError} `UNAUTHORIZED`; every refused key gets the same text */
  async authenticate(authorization: string | undefined): Promise<Caller & { keyId: string }> {
    if (authorization === undefined)
      throw new ApiError('UNAUTHORIZED', 'Send "Authorization: Bearer <API_KEY>".');
    const token = bearerToken(authorization);
    const key = token === undefined ? undefined : await this.#find(digestSecret(token));
    if (key === undefined || 'isRefused' in key)
      throw key === undefined ? new ApiError('UNAUTHORIZED', NOT_VALID) : new KeyRefused(key);
    this.#uses.note(key.id, this.#clock.now());
    return { userId: key.userId, keyId: key.id };
  }

  /** Writes the times of last use since the previous call. If the write fails, they are kept for the next call. */
  async recordUses(): Promise<void> {
    await this.#uses.write((uses) =>
      this.#store.transact(async (tx) => {
        for (const [id, at] of uses) await tx.keys.recordUse(id, at);
      }),
    );
  }

  async #find(digest: Buffer): Promise<Key | Refused | undefined> {
    const now = this.#clock.now();
    const name = digest.toString('base64');
    const entry = this.#remembered.get(name);
    if (entry !== undefined && now - entry.checkedAt < RECHECK_AFTER_MS)
      return hasExpired(entry.key, now) ? { ...entry.key, isRefused: true } : entry.key;
    const emptied = this.#emptied;
    const key = await this.#store.read.keys.byDigest(digest);
    if (key === null || key.revokedAt !== null || hasExpired(key, now)) {
      this.#remembered.delete(name);
      return key === null ? undefined : { ...key, isRefused: true };
    }
    if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear();
    // A key that was revoked during the read is not cached.
    if (emptied === this.#emptied) this.#remembered.set(name, { key, checkedAt: now });
    return key;
  }
}

function hasExpired({ expiresAt }: Pick<Key, 'expiresAt'>, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}
