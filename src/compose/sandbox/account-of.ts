import type { SandboxKeys } from './control.ts';
import type { StartedProvider } from './provider.ts';

interface Parts {
  keys: SandboxKeys;
  providers: ReadonlyMap<string, StartedProvider>;
}

/**
 * Returns a function that finds the account of a request with the server's own path, by its key or token. Undefined for
 * another credential.
 */
export function createAccountOf({ keys, providers }: Parts) {
  /** The accounts of tokens that were used. A provider forgets expired ones. */
  const tokens = new Map<string, string>();
  return async (server: string, request: Request): Promise<string | undefined> => {
    const credential = await credentialOf(request);
    if (credential === undefined) return undefined;
    const ofKey = keys.accountOf(credential);
    if (ofKey !== undefined) return ofKey;
    const token = `${server} ${credential}`;
    const account = (await providers.get(server)?.accountOf(credential)) ?? tokens.get(token);
    if (account !== undefined) tokens.set(token, account);
    return account;
  };
}

/** The key with which a request logs in, or its bearer token. */
async function credentialOf(request: Request): Promise<string | undefined> {
  if (request.method === 'POST' && new URL(request.url).pathname === '/v1/auth/token') {
    const sent: unknown = await request
      .clone()
      .json()
      .catch(() => undefined);
    const { api_key: apiKey } = (sent ?? {}) as Record<string, unknown>;
    if (typeof apiKey === 'string') return apiKey;
  }
  return /^Bearer (.+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
}
