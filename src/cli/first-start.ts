import { digestSecret } from '../keys/api-key.ts';
import { addAccount, addKey } from '../orchestrator/accounts/accounts.ts';
import type { AccountRecord } from '../orchestrator/model/credential-records.ts';
import type { Store } from '../orchestrator/model/store.ts';
import type { Clock, Random } from '../ports/clock.ts';
import { readSecret } from './read-secret.ts';

export const DEFAULT_ACCOUNT = 'default';

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
}

/**
 * The digest of the key in BERTH_API_KEY, which is valid while this process serves.
 *
 * @throws {Fatal} if it is none that a client could send, or could be guessed.
 */
export function readEnvironmentKey(env: Readonly<Record<string, string | undefined>>): Buffer | undefined {
  const key = readSecret(env, 'BERTH_API_KEY');
  return key === undefined ? undefined : digestSecret(key);
}

/**
 * Sees to it that there is an account and a way in. `apiKey` is the key made now, to be shown once; null: there
 * were keys before, or the environment brings one. `accountId` is the account that such a one opens. Of several
 * servers that start on an empty database at once, one makes both.
 */
export async function ensureAccess(
  { store, ...parts }: Deps,
  environmentKey: Buffer | undefined,
): Promise<{ apiKey: string | null; accountId: string }> {
  return store.transact(async (tx) => {
    const accounts = await tx.credentials.listAccounts();
    const { id: accountId } = findDefault(accounts) ?? (await addAccount(tx, parts, DEFAULT_ACCOUNT));
    const hasWayIn = environmentKey !== undefined || (await tx.credentials.listKeys()).length > 0;
    const apiKey = hasWayIn ? null : (await addKey(tx, parts, accountId, { label: 'first start' })).key;
    return { apiKey, accountId };
  });
}

function findDefault(accounts: readonly AccountRecord[]): AccountRecord | undefined {
  return accounts.find(({ name }) => name === DEFAULT_ACCOUNT) ?? accounts[0];
}
