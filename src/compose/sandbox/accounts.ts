import { invalidRequest } from '../../contract/errors.ts';
import { DEFAULT_ACCOUNT } from '../../orchestrator/accounts/accounts.ts';
import { Fatal } from '../../ports/errors.ts';
import type { SandboxClock } from '../../sandbox/clock.ts';
import { MARKETPLACE } from '../../sandbox/options.ts';
import type { SandboxAccount } from '../../sandbox/parts.ts';
import type { Part } from '../../sandbox/state/snapshots.ts';
import type { StartedMarketplace } from './marketplace.ts';
import type { StartedProvider } from './provider.ts';

interface Parts {
  clock: SandboxClock;
  providers: ReadonlyMap<string, StartedProvider>;
  market(): Pick<StartedMarketplace, 'addUser'> | undefined;
  /** Called when an account was created. */
  changed(): void;
}

/** A key, its account, and its provider or `marketplace`. */
interface KeyOfAccount {
  apiKey: string;
  account: string;
  provider: string;
}

/** The accounts of a sandbox: the keys of each name. */
export class Accounts implements Part<readonly KeyOfAccount[]> {
  readonly #parts: Parts;
  #byKey = new Map<string, KeyOfAccount>();
  /** Also of accounts that are being created. */
  #names = new Set<string>();
  /** The accounts of tokens that were used. A provider forgets expired ones. */
  readonly #tokens = new Map<string, string>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  register(apiKey: string, account: string, provider: string): void {
    this.#byKey.set(apiKey, { apiKey, account, provider });
    this.#names.add(account);
  }

  keys(): readonly KeyOfAccount[] {
    return [...this.#byKey.values()];
  }

  /** The name of a key, such as `provider-a/default`. Undefined if it is not of this sandbox. */
  nameOf(apiKey: string): string | undefined {
    const found = this.#byKey.get(apiKey);
    return found && `${found.provider}/${found.account}`;
  }

  /** The key of an account at a server. The account is created if there is none of that name. */
  async keyOf(account: string, provider: string): Promise<string | undefined> {
    if (!this.#names.has(account)) await this.add(account);
    return this.keys().find((one) => one.account === account && one.provider === provider)?.apiKey;
  }

  /** The account of a request with the server's own path, by its key or token. Undefined for another credential. */
  async accountOf(server: string, request: Request): Promise<string | undefined> {
    const credential = await credentialOf(request);
    if (credential === undefined) return undefined;
    const ofKey = this.#byKey.get(credential)?.account;
    if (ofKey !== undefined) return ofKey;
    const token = `${server} ${credential}`;
    const provider = this.#parts.providers.get(server);
    const account = (await provider?.accountOf(credential)) ?? this.#tokens.get(token);
    if (account !== undefined) this.#tokens.set(token, account);
    return account;
  }

  /** Creates an account, by default with the first free name `account-N`. @throws {ApiError} if the name is taken or invalid */
  async add(name?: string): Promise<SandboxAccount> {
    const { clock, changed } = this.#parts;
    await clock.released();
    const refused = (message: string) => invalidRequest([{ path: 'name', message }]);
    let wanted = name ?? 'account-1';
    for (let number = 2; name === undefined && this.#names.has(wanted); number++)
      wanted = `account-${number}`;
    if (this.#names.has(wanted)) throw refused('there is an account of that name already');
    this.#names.add(wanted);
    try {
      const opened = await clock.during(this.open(wanted));
      changed();
      return opened;
    } catch (error) {
      this.#names.delete(wanted);
      throw error instanceof Fatal ? refused(error.message) : error;
    }
  }

  async open(name: string): Promise<SandboxAccount> {
    const { providers, market } = this.#parts;
    const at: Record<string, { readonly baseUrl: string; apiKey: string }> = {};
    for (const provider of providers.values()) {
      const apiKey = name === DEFAULT_ACCOUNT ? provider.apiKey : await provider.addAccount(name);
      this.register(apiKey, name, provider.name);
      at[provider.name] = {
        // It changes when the sandbox begins to listen.
        get baseUrl() {
          return provider.baseUrl;
        },
        apiKey,
      };
    }
    const marketplace = await market()?.addUser(name);
    if (marketplace !== undefined) this.register(marketplace.apiKey, name, MARKETPLACE);
    return { name, providers: at, marketplace };
  }

  save(): readonly KeyOfAccount[] {
    return this.keys();
  }

  load(saved: readonly KeyOfAccount[]): void {
    this.#byKey = new Map(saved.map((one) => [one.apiKey, one]));
    this.#names = new Set(saved.map(({ account }) => account));
  }
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
