import { invalidRequest } from '../../contract/errors.ts';
import { DEFAULT_ACCOUNT } from '../../orchestrator/accounts/accounts.ts';
import { Fatal } from '../../ports/errors.ts';
import type { SandboxClock } from '../../sandbox/clock.ts';
import { MARKETPLACE } from '../../sandbox/options.ts';
import type { SandboxAccount } from '../../sandbox/parts.ts';
import type { SandboxKeys } from './control.ts';
import type { StartedMarketplace } from './marketplace.ts';
import type { StartedProvider } from './provider.ts';

interface Parts {
  clock: SandboxClock;
  providers: ReadonlyMap<string, StartedProvider>;
  keys: SandboxKeys;
  market(): Pick<StartedMarketplace, 'addUser'> | undefined;
  /** Called when an account was created. */
  changed(): void;
}

/** Creates the accounts of a sandbox. `assertOpen` throws once the sandbox is closed. */
export function createAccounts({ clock, providers, keys, market, changed }: Parts, assertOpen: () => void) {
  async function open(name: string): Promise<SandboxAccount> {
    const at: Record<string, { readonly baseUrl: string; apiKey: string }> = {};
    for (const provider of providers.values()) {
      const apiKey = name === DEFAULT_ACCOUNT ? provider.apiKey : await provider.addAccount(name);
      keys.add(apiKey, name, provider.name);
      at[provider.name] = {
        // It changes when the sandbox begins to listen.
        get baseUrl() {
          return provider.baseUrl;
        },
        apiKey,
      };
    }
    const user = await market()?.addUser(name);
    if (user !== undefined) keys.add(user.apiKey, name, MARKETPLACE);
    return { name, providers: at, ...(user !== undefined && { marketplace: user }) };
  }

  /** @throws {ApiError} if the name is taken or invalid */
  async function add(wanted?: string): Promise<SandboxAccount> {
    assertOpen();
    await clock.released();
    const refused = (message: string) => invalidRequest([{ path: 'name', message }]);
    const name = keys.take(wanted);
    if (name === undefined) throw refused('there is an account of that name already');
    try {
      const opened = await clock.during(open(name));
      changed();
      return opened;
    } catch (error) {
      keys.giveBack(name);
      throw error instanceof Fatal ? refused(error.message) : error;
    }
  }
  return { open, add };
}
