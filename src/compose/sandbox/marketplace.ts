import { createClient } from '../../client/create-client.ts';
import type { RandomState } from '../../drivers/kit/seeded-random.ts';
import { grant } from '../../marketplace/ledger/credit.ts';
import { defaultOptions, defaultRateLimits, noRateLimits } from '../../marketplace/model/options.ts';
import type { Store, Transaction } from '../../marketplace/model/store.ts';
import { noMarkups } from '../../marketplace/providers/markup.ts';
import { resolveTeam } from '../../marketplace/teams/access.ts';
import { createKey } from '../../marketplace/teams/keys.ts';
import { addUser } from '../../marketplace/teams/users.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { revocable, type SandboxClock } from '../../sandbox/clock.ts';
import { MARKETPLACE, type MarketplaceSettings } from '../../sandbox/options.ts';
import type { SandboxMail, SandboxUser } from '../../sandbox/parts.ts';
import type { Server } from '../../sandbox/provider.ts';
import type { Part } from '../../sandbox/state/snapshots.ts';
import { openMemoryMarketplaceStore } from '../../store/marketplace/sqlite/store.ts';
import { SOLE_LEASE_MS } from '../../work/lease-time.ts';
import { startMarketplace } from '../marketplace/marketplace.ts';
import { loadGpuTypes } from '../marketplace/providers.ts';
import type { StartedProvider } from './provider.ts';
import { createRestartRandom } from './restart-random.ts';

const CREDIT_USD = 10_000;
/** A responding provider is polled, and the poll is written, within this time. */
const POLLED_WITHIN_MS = 75_000;
/** A limit that no test reaches. */
const UNLIMITED = 1_000_000_000;

interface MarketplaceParts {
  settings: MarketplaceSettings;
  providers: readonly StartedProvider[];
  /** Sends a request to a provider, with the provider's own path. */
  send(provider: string, request: Request): Promise<Response>;
  /** Registers the marketplace's key at a provider. */
  opened(key: string, account: string, provider: string): void;
  clock: SandboxClock;
  seed: string;
  /** The current origin of base URLs. */
  origin(): string;
  hasRateLimits: boolean;
  /** Called when a mail is written, which is sent a little later. */
  changed(): void;
  log: Log;
}

/** The saved state of a marketplace. */
interface SavedMarketplace {
  database: Buffer;
  random: RandomState;
  mails: readonly SandboxMail[];
  hasStarted: boolean;
}

export type StartedMarketplace = Awaited<ReturnType<typeof startSandboxMarketplace>>;

/**
 * Creates the marketplace on top of the providers of a sandbox. It starts with the first request: until then it has no work.
 */
export async function startSandboxMarketplace(parts: MarketplaceParts) {
  const { settings, clock, origin } = parts;
  const keys = await keysOf(parts);
  const mails: SandboxMail[] = [];
  let current = open(parts, keys, mails);
  return {
    app: { fetch: async (request: Request) => (await current.wake()).app.fetch(request) },
    /** The operator API, for requests whose key was checked. It is loaded and assembled on the first one. */
    operator: { fetch: async (request: Request) => (await current.operate()).fetch(request) },
    get store(): Store {
      return current.deps.store;
    },
    mails: mails as readonly SandboxMail[],
    async addUser(name: string): Promise<SandboxUser> {
      const { deps } = current;
      const email = `${name}@sandbox.test`;
      const { id: userId } = await addUser(deps, { email, mayMakeKeys: true });
      const { key: apiKey } = await createKey(deps, email);
      const teamId = await resolveTeam(deps, { userId });
      const { credit_usd: usd = CREDIT_USD } = settings;
      if (usd > 0) await grant(deps, { teamId, amountMicroUsd: Math.round(usd * 1_000_000) });
      return {
        get baseUrl() {
          return `${origin()}/api`;
        },
        apiKey,
        email,
        userId,
        teamId,
      };
    },
    /** Called after a skip. Nothing changed until `seenUntil`, so polls in that time would have confirmed it. */
    async skipped(from: number, to: number, seenUntil: number): Promise<void> {
      const started = await current.started();
      if (started === undefined) return;
      const confirmed = current.polls.since(from - POLLED_WITHIN_MS);
      await current.confirm(confirmed, seenUntil);
      started.workers.postpone(
        confirmed.map(({ id }) => id),
        to - from,
      );
    },
    /** Runs a round of each job for what is due now. Nothing changed since `changedAt`, so a poll now would confirm later ones. */
    async runRounds(changedAt: number): Promise<void> {
      const started = await current.started();
      if (started === undefined) return;
      const now = clock.now();
      const polled = current.polls.since(now - POLLED_WITHIN_MS);
      await current.confirm(
        polled.filter(({ at }) => at > changedAt),
        now,
      );
      const { billing, stockAlerts, mail } = started;
      // The second round of billing confirms the readings of the first.
      for (const job of [billing, billing, stockAlerts, mail]) await job.run();
    },
    save() {
      const database = current.opened.image();
      if (database === undefined) return undefined;
      const hasStarted = current.started() !== undefined;
      return { database, random: current.deps.random.state(), mails: structuredClone(mails), hasStarted };
    },
    /** Running work is abandoned, as in a crash. */
    async load(saved) {
      current.time.revoke();
      await current.opened.close();
      mails.splice(0, mails.length, ...structuredClone(saved.mails));
      current = open(parts, keys, mails, saved);
      if (saved.hasStarted) await clock.during(current.wake());
    },
    async close() {
      await (await current.started())?.close();
      await current.opened.close();
    },
  } satisfies Part<SavedMarketplace> & Record<string, unknown>;
}

/** Opens a saved marketplace, or a new one. */
function open(parts: MarketplaceParts, keys: Keys, mails: SandboxMail[], saved?: SavedMarketplace) {
  const { clock, seed, log } = parts;
  const time = revocable(clock);
  const random = createRestartRandom(`${seed}/marketplace`, saved?.random);
  const opened = openMemoryMarketplaceStore(saved?.database);
  const polls = new ConfirmingPolls();
  const deps = { store: watched(opened, clock, polls, parts.changed), clock: time.clock, random };
  const start = async () => {
    const marketplace = await startMarketplace({
      ...deps,
      log,
      options: {
        ...defaultOptions,
        maxLosses: { ...defaultOptions.maxLosses, least: UNLIMITED },
      },
      rateLimits: parts.hasRateLimits ? defaultRateLimits : noRateLimits,
      providers: clientsOf(parts, keys, time.clock),
      gpuTypes: loadGpuTypes(),
      mailer: {
        send: async ({ to, subject, text }) => void mails.push({ at: clock.now(), to, subject, text }),
        close: () => undefined,
      },
      // The router reports each client's address.
      trustedProxies: 1,
    });
    await marketplace.workers.refreshCatalogs();
    return marketplace;
  };
  let running: ReturnType<typeof start> | undefined;
  const wake = (): ReturnType<typeof start> => {
    running ??= random.duringStart(start);
    return running;
  };
  let operating: Promise<Server> | undefined;
  const startOperating = async (): Promise<Server> => {
    const { operateMarketplace } = await import('./operate-marketplace.ts');
    return operateMarketplace(await wake());
  };
  const operate = (): Promise<Server> => {
    operating ??= startOperating();
    return operating;
  };
  const confirm = async (confirmed: readonly Confirmation[], at: number): Promise<void> => {
    const seen = confirmed.map((observation) => ({ ...observation, at }));
    if (seen.length > 0) await deps.store.transact((tx) => tx.deployments.recordObservations(seen));
  };
  return { wake, started: () => running, deps, operate, opened, time, polls, confirm };
}

/** Keys by the names of the providers. */
type Keys = ReadonlyMap<string, string>;

/** The keys of the marketplace's account at each provider. */
async function keysOf({ providers, opened }: MarketplaceParts): Promise<Keys> {
  const keys = new Map<string, string>();
  for (const { name, addAccount } of providers) {
    const apiKey = await addAccount(MARKETPLACE);
    opened(apiKey, MARKETPLACE, name);
    keys.set(name, apiKey);
  }
  return keys;
}

function clientsOf({ providers, send }: MarketplaceParts, keys: Keys, clock: Clock) {
  return providers.map(({ name, profile, probe }) => {
    const client = createClient({
      baseUrl: `http://${name}.test/v1`,
      credential: { apiKey: keys.get(name) ?? '' },
      allowPrivate: true,
      timeoutMs: defaultOptions.polling.callTimeoutMs,
      clock,
      fetch: (url, init) => send(name, new Request(url, init)),
    });
    return { profile, client, sshProbe: probe, markups: noMarkups };
  });
}

/**
 * Wraps the store: leases last for 100 years, transactions count as activity, mails as changes, and confirmations by polls
 * are recorded.
 */
function watched(opened: Store, clock: SandboxClock, polls: ConfirmingPolls, changed: () => void): Store {
  return {
    ...opened,
    transact: (body) =>
      clock.noting(
        opened.transact((tx) => {
          const leases: Transaction['leases'] = {
            ...tx.leases,
            claim: (names, holder, now) => tx.leases.claim(names, holder, now, SOLE_LEASE_MS),
          };
          const deployments: Transaction['deployments'] = {
            ...tx.deployments,
            recordObservations: (observations) => {
              polls.add(observations);
              return tx.deployments.recordObservations(observations);
            },
          };
          const mail: Transaction['mail'] = {
            ...tx.mail,
            insert: (record) => {
              changed();
              return tx.mail.insert(record);
            },
          };
          return body({ ...tx, leases, deployments, mail });
        }),
      ),
  };
}

type Confirmation = Parameters<Transaction['deployments']['recordObservations']>[0][number];

/** The last poll of each deployment that found it unchanged. */
class ConfirmingPolls {
  readonly #last = new Map<string, Confirmation>();

  add(confirmations: readonly Confirmation[]): void {
    for (const one of confirmations)
      if (one.at > (this.#last.get(one.id)?.at ?? Number.NEGATIVE_INFINITY)) this.#last.set(one.id, one);
  }

  /** Returns the confirmations since `at`, and drops older ones. */
  since(at: number): Confirmation[] {
    for (const [id, one] of this.#last) if (one.at < at) this.#last.delete(id);
    return [...this.#last.values()];
  }
}
