import { createAccount, createKey } from '../orchestrator/accounts/accounts.ts';
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

export interface FirstStart {
  /** The key made now, to be shown once; null: there were accounts before, or the environment brings the key. */
  apiKey: string | null;
  environmentKey: { digest: Buffer; accountId: string } | undefined;
}

/** Sees to it that there is an account, and a way in: on the first start a key is made unless the environment brings one. */
export async function ensureAccess(deps: Deps, environmentKey: string | undefined): Promise<FirstStart> {
  if (environmentKey !== undefined && !isUsable(environmentKey))
    throw new Fatal(
      `BERTH_API_KEY must be ${MIN_ENVIRONMENT_KEY_LENGTH} to 512 characters of A-Z a-z 0-9 . _ ~ + / = -; make one with \`openssl rand -hex 32\`.`,
    );
  const accounts = await deps.store.read.credentials.listAccounts();
  const account = findDefault(accounts) ?? (await createAccount(deps, DEFAULT_ACCOUNT));
  if (environmentKey !== undefined)
    return { apiKey: null, environmentKey: { digest: digestSecret(environmentKey), accountId: account.id } };
  const isFirstStart = (await deps.store.read.credentials.listKeys()).length === 0;
  const apiKey = isFirstStart ? (await createKey(deps, account.name, { label: 'first start' })).key : null;
  return { apiKey, environmentKey: undefined };
}

function findDefault(accounts: readonly AccountRecord[]): AccountRecord | undefined {
  return accounts.find(({ name }) => name === DEFAULT_ACCOUNT) ?? accounts[0];
}

function isUsable(key: string): boolean {
  return key.length >= MIN_ENVIRONMENT_KEY_LENGTH && /^[A-Za-z0-9._~+/=-]{1,512}$/.test(key);
}
