import { describeApiKey, digestSecret, generateApiKey } from '../../keys/api-key.ts';
import type { Clock, Random, Timer } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { newId } from '../model/names.ts';
import { OperatorError } from '../model/own-rows.ts';
import type { ApiKeyRecord } from '../model/people.ts';
import type { Store } from '../model/store.ts';
import type { Authenticator } from './authenticate.ts';
import { findUser } from './users.ts';

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
}

/**
 * Makes a key and returns it: the only time that it is seen (M: Authentication, 1: "access to key generation is
 * controlled by a whitelist; keys may carry an expiry date and can be revoked").
 *
 * @throws {OperatorError}
 */
export async function createKey(
  { store, clock, random }: Deps,
  email: string,
  { label = null, expiresAt = null }: { label?: string | null; expiresAt?: number | null } = {},
): Promise<{ key: string; record: ApiKeyRecord }> {
  if (expiresAt !== null && expiresAt <= clock.now())
    throw new OperatorError('A key ends at a time to come.');
  const key = generateApiKey(random);
  return store.transact(async (tx) => {
    const user = await findUser(tx.users, email);
    if (!user.mayMakeKeys)
      throw new OperatorError(
        `${user.email} may not have keys: \`berth marketplace users allow-keys ${user.email}\` lets them.`,
      );
    const record: ApiKeyRecord = {
      id: newId(random, 'key'),
      userId: user.id,
      digest: digestSecret(key),
      ...describeApiKey(key),
      label,
      createdAt: clock.now(),
      expiresAt,
      revokedAt: null,
      lastUsedAt: null,
    };
    await tx.keys.insert(record);
    return { key, record };
  });
}

/** Ends a key; revoking twice keeps the first time. @throws {OperatorError} */
export async function revokeKey({ store, clock }: Omit<Deps, 'random'>, id: string): Promise<number> {
  return store.transact(async (tx) => {
    const record = await tx.keys.byId(id);
    if (record === null)
      throw new OperatorError(`There is no key "${id}": see \`berth marketplace keys list\`.`);
    if (record.revokedAt !== null) return record.revokedAt;
    const revokedAt = clock.now();
    await tx.keys.revoke(id, revokedAt);
    return revokedAt;
  });
}

const EVERY_MS = 60_000;

/** Writes once a minute when each key was used last. */
export class KeyUses {
  readonly #deps: { authenticator: Authenticator; clock: Clock; log: Log };
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: { authenticator: Authenticator; clock: Clock; log: Log }) {
    this.#deps = deps;
  }

  start(): void {
    this.#timer = this.#deps.clock.setTimer(EVERY_MS, () => {
      this.#writing = this.#write();
      this.start();
    });
  }

  /** Writes what is left. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#writing;
    await this.#write();
  }

  async #write(): Promise<void> {
    const { authenticator, log } = this.#deps;
    await authenticator
      .recordUses()
      .catch((err) =>
        log.warn({ err }, 'the times of last use of the keys could not be written; it will be retried'),
      );
  }
}
