import { describeApiKey, digestSecret, generateApiKey } from '../../keys/api-key.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import { newId } from '../model/names.ts';
import { OperatorError } from '../model/own-rows.ts';
import type { ApiKeyRecord } from '../model/people.ts';
import type { Store } from '../model/store.ts';
import { findUser } from './users.ts';

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
}

/**
 * Creates a key, which is shown only once. M: Authentication, 1: "access to key generation is controlled by a
 * whitelist".
 * @throws {OperatorError}
 */
export async function createKey(
  { store, clock, random }: Deps,
  email: string,
  { label = null, expiresAt = null }: { label?: string | null; expiresAt?: number | null } = {},
): Promise<{ key: string; record: ApiKeyRecord }> {
  if (expiresAt !== null && expiresAt <= clock.now())
    throw new OperatorError('The expiry must be in the future.');
  const key = generateApiKey(random);
  return store.transact(async (tx) => {
    const user = await findUser(tx.users, email);
    if (!user.mayMakeKeys)
      throw new OperatorError(
        `${user.email} may not have keys: allow it with \`berth marketplace users allow-keys ${user.email}\`.`,
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

/** Revokes a key. Revoking it again keeps the first time. @throws {OperatorError} */
export async function revokeKey({ store, clock }: Omit<Deps, 'random'>, id: string): Promise<number> {
  return store.transact(async (tx) => {
    const record = await tx.keys.byId(id);
    if (record === null)
      throw new OperatorError(`There is no key "${id}": see \`berth marketplace keys ls\`.`, 'not_found');
    if (record.revokedAt !== null) return record.revokedAt;
    const revokedAt = clock.now();
    await tx.keys.revoke(id, revokedAt);
    return revokedAt;
  });
}
