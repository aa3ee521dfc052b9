import { addAccount, addKey } from '../orchestrator/accounts/accounts.ts';
import { digestSecret } from '../orchestrator/accounts/api-key.ts';
import type { AccountRecord } from '../orchestrator/accounts/credential-records.ts';
import type { Clock, Random } from '../orchestrator/ports/clock.ts';
import type { Store } from '../orchestrator/ports/store.ts';
import { Fatal } from './fatal.ts';

export const DEFAULT_ACCOUNT = 'default';
const MIN_ENVIRONMENT_KEY_LENGTH = 16;

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
  const key = env['BERTH_API_KEY'];
  if (key === undefined || key === '') return undefined;
  if (!isUsable(key))
    throw new Fatal(
      `BERTH_API_KEY must be ${MIN_ENVIRONMENT_KEY_LENGTH} to 512 characters of A-Z a-z 0-9 . _ ~ + / = -; make one with \`openssl rand -hex 32\`.`,
    );
  return digestSecret(key);
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

function isUsable(key: string): boolean {
  return key.length >= MIN_ENVIRONMENT_KEY_LENGTH && /^[A-Za-z0-9._~+/=-]{1,512}$/.test(key);
}
