import { createClient } from '../client/create-client.ts';
import { createSeededRandom } from '../drivers/kit/seeded-random.ts';
import { grant } from '../marketplace/ledger/credit.ts';
import { defaultOptions, defaultRateLimits } from '../marketplace/model/options.ts';
import type { Store } from '../marketplace/model/store.ts';
import { noMarkups } from '../marketplace/providers/markup.ts';
import { resolveTeam } from '../marketplace/teams/access.ts';
import { createKey } from '../marketplace/teams/keys.ts';
import { addUser } from '../marketplace/teams/users.ts';
import type { Log } from '../ports/log.ts';
import { withOverrides } from '../ports/with-overrides.ts';
import type { SandboxClock } from '../sandbox/clock.ts';
import type { MarketplaceSettings } from '../sandbox/options.ts';
import type { SandboxMail, SandboxUser } from '../sandbox/sandbox.ts';
import { openMarketplaceSqliteStore } from '../store/marketplace/sqlite/store.ts';
import { startMarketplace } from './marketplace.ts';
import { loadGpuTypes } from './providers.ts';
import type { StartedProvider } from './sandbox-provider.ts';

/** The account that the marketplace has at each provider. */
const ACCOUNT = 'marketplace';
const CREDIT_USD = 10_000;
const MAX_BODY_BYTES = 1024 * 1024;
/** A single process has no rival: its leases survive however much time is skipped. */
const LEASE_MS = 100 * 365 * 86_400_000;
/** More than any test asks for. */
const UNLIMITED = 1_000_000_000;

interface MarketplaceParts {
  settings: MarketplaceSettings;
  providers: Iterable<StartedProvider>;
  /** How a request reaches a provider, with the path of the provider itself. */
  send(provider: string, request: Request): Promise<Response>;
  /** The key of the marketplace at a provider. */
  opened(key: string, account: string): void;
  clock: SandboxClock;
  seed: string;
  origin: string;
  hasRateLimits: boolean;
  log: Log;
}

export interface StartedMarketplace {
  app: { fetch(request: Request): Response | Promise<Response> };
  store: Store;
  mails: readonly SandboxMail[];
  addUser(name: string): Promise<SandboxUser>;
  close(): Promise<void>;
}

/** Starts the marketplace on top of the providers of a sandbox. */
export async function startSandboxMarketplace(parts: MarketplaceParts): Promise<StartedMarketplace> {
  const { settings, clock, seed, origin, log } = parts;
  const random = createSeededRandom(`${seed}/marketplace`);
  const store = withLastingLeases(openMarketplaceSqliteStore(':memory:'), clock);
  const mails: SandboxMail[] = [];
  const { app, close, providers } = await startMarketplace({
    store,
    clock,
    random,
    log,
    options: {
      ...defaultOptions,
      spending: {
        ...defaultOptions.spending,
        teamLimits: { ...defaultOptions.spending.teamLimits, ...settings.teamLimits },
      },
    },
    rateLimits: parts.hasRateLimits
      ? defaultRateLimits
      : {
          ...defaultRateLimits,
          catalogReads: UNLIMITED,
          accountRequests: UNLIMITED,
          creates: UNLIMITED,
          otherRequests: UNLIMITED,
        },
    providers: await clientsOf(parts),
    gpuTypes: loadGpuTypes(),
    mailer: {
      send: async ({ to, subject, text }) => void mails.push({ at: clock.now(), to, subject, text }),
      close: () => undefined,
    },
    maxBodyBytes: MAX_BODY_BYTES,
    // Each account has an address of its own, and with it its own rate limits.
    trustedProxies: 1,
  });
  await providers.refresh();
  const deps = { store, clock, random };
  return {
    app,
    store,
    mails,
    async addUser(name) {
      const email = `${name}@sandbox.test`;
      const { id: userId } = await addUser(deps, { email, mayMakeKeys: true });
      const { key: apiKey } = await createKey(deps, email);
      const teamId = await resolveTeam(deps, { userId });
      const { creditUsd = CREDIT_USD } = settings;
      if (creditUsd > 0) await grant(deps, { teamId, amountMicroUsd: Math.round(creditUsd * 1_000_000) });
      return { baseUrl: `${origin}/api`, apiKey, email, userId, teamId };
    },
    close: async () => {
      await close();
      await store.close();
    },
  };
}

async function clientsOf({ providers, send, opened, clock }: MarketplaceParts) {
  return Promise.all(
    [...providers].map(async ({ name, profile, probe, addAccount }) => {
      const apiKey = await addAccount(ACCOUNT);
      opened(apiKey, ACCOUNT);
      const client = createClient({
        baseUrl: `http://${name}.test/v1`,
        credential: { apiKey },
        allowPrivate: true,
        timeoutMs: defaultOptions.polling.callTimeoutMs,
        clock,
        fetch: (url, init) => send(name, new Request(url, init)),
      });
      return { profile, client, sshProbe: probe, markups: noMarkups };
    }),
  );
}

function withLastingLeases(opened: Store, clock: SandboxClock): Store {
  return withOverrides(opened, {
    transact: (body) =>
      clock.noting(
        opened.transact((tx) => {
          const leases = withOverrides(tx.leases, {
            claim: (name, holder, now) => tx.leases.claim(name, holder, now, LEASE_MS),
          });
          return body({ ...tx, leases });
        }),
      ),
  });
}
