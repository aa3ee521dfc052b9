import { resourceOf } from '../../sandbox/faults/arming.ts';
import { withoutBase } from '../../sandbox/operations.ts';
import { MARKETPLACE, type Ownership } from '../../sandbox/ownership.ts';
import type { SandboxKeys } from './control.ts';
import type { StartedMarketplace } from './marketplace.ts';
import type { StartedProvider } from './provider.ts';

interface Parts {
  keys: SandboxKeys;
  providers: ReadonlyMap<string, StartedProvider>;
  /** Undefined if there is no marketplace. */
  market(): Pick<StartedMarketplace, 'accountOf' | 'tenantOf'> | undefined;
}

/** Returns a function that finds the accounts of a request with the server's own path. */
export function createOwnershipOf({ keys, providers, market }: Parts) {
  /** The accounts of tokens that were used. A provider forgets expired ones. */
  const tokens = new Map<string, string>();

  async function accountOf(server: string, request: Request): Promise<string | undefined> {
    const { authorization, username } = await credentialOf(request);
    if (username !== undefined) return providers.get(server)?.accountNamed(username);
    if (authorization === undefined) return undefined;
    const issuer = server === MARKETPLACE ? market() : providers.get(server);
    const ofKey = keys.accountOf(authorization);
    if (ofKey !== undefined) return ofKey;
    const token = `${server} ${authorization}`;
    const account = (await issuer?.accountOf(authorization)) ?? tokens.get(token);
    if (account !== undefined) tokens.set(token, account);
    return account;
  }

  /** What the marketplace asks a provider for a tenant: a create has the tenant's deployment or volume as its key. */
  async function tenantOf(server: string, { url, headers }: Request): Promise<Ownership | undefined> {
    const key = headers.get('idempotency-key');
    if (key !== null) return market()?.tenantOf(key);
    const id = resourceOf(withoutBase(new URL(url).pathname));
    return id === undefined ? undefined : providers.get(server)?.ownerOfId(id);
  }

  return async (server: string, request: Request): Promise<Ownership> => {
    const account = await accountOf(server, request);
    if (account === undefined) return {};
    const isForTenant = account === MARKETPLACE && market() !== undefined && server !== MARKETPLACE;
    const tenant = isForTenant ? await tenantOf(server, request) : undefined;
    return tenant === undefined ? { account } : { account: tenant.account, alsoOf: tenant.alsoOf };
  };
}

/** The credential of a request: what it logs in with, or its bearer token. */
async function credentialOf(request: Request): Promise<{ authorization?: string; username?: string }> {
  if (request.method === 'POST' && new URL(request.url).pathname === '/v1/auth/token') {
    const sent: unknown = await request
      .clone()
      .json()
      .catch(() => undefined);
    const { api_key: apiKey, username } = (sent ?? {}) as Record<string, unknown>;
    if (typeof apiKey === 'string') return { authorization: apiKey };
    if (typeof username === 'string') return { username };
  }
  const [, bearer] = /^Bearer (.+)$/i.exec(request.headers.get('authorization') ?? '') ?? [];
  return bearer === undefined ? {} : { authorization: bearer };
}
