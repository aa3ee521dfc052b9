import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import type { OrchestratorClient } from '../../src/client/orchestrator-client.ts';
import { startMarketplace } from '../../src/compose/marketplace/marketplace.ts';
import { bundledProfileFile, loadProfile } from '../../src/config/marketplace/load-profile.ts';
import { grant } from '../../src/marketplace/ledger/credit.ts';
import type { Mailer } from '../../src/marketplace/mail/mailer.ts';
import {
  defaultOptions,
  defaultRateLimits,
  type MarketplaceOptions,
  type RateLimitOptions,
} from '../../src/marketplace/model/options.ts';
import type { Store } from '../../src/marketplace/model/store.ts';
import { parseGpuTypes } from '../../src/marketplace/providers/gpu-types.ts';
import { type Markups, noMarkups } from '../../src/marketplace/providers/markup.ts';
import type { ProviderProfile } from '../../src/marketplace/providers/profile.ts';
import { resolveTeam } from '../../src/marketplace/teams/access.ts';
import { createKey } from '../../src/marketplace/teams/keys.ts';
import { addUser, type UserChanges } from '../../src/marketplace/teams/users.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { Log } from '../../src/ports/log.ts';
import type { SshProbe } from '../../src/ports/ssh-probe.ts';
import type { Certificates } from '../../src/runtime/certificates.ts';
import { systemClock } from '../../src/runtime/system.ts';
import { openMarketplaceSqliteStore } from '../../src/store/marketplace/sqlite/store.ts';
import { silentLog } from './doubles/log.ts';
import { steadyRandom } from './doubles/random.ts';
import { assertKeepsMarketplaceContract } from './http/contract.ts';
import { type InProcessRequest, serveInProcess } from './http/in-process-server.ts';
import { putEmptyDatabase } from './rows/stores.ts';
import { VirtualClock } from './time/virtual-clock.ts';

export interface TestProvider {
  /** Default: the profile that comes with Berth under the id in `providers`. */
  profile?: ProviderProfile;
  client: OrchestratorClient;
  /** Default: the provider is believed. */
  sshProbe?: SshProbe;
  /** Default: none. */
  markups?: Markups;
}

export interface TestMarketplaceOptions {
  clock?: Clock;
  /** By id, in the order in which they are listed. */
  providers?: Record<string, TestProvider>;
  /** Merged over the defaults. */
  options?: Partial<MarketplaceOptions>;
  /** Merged over limits that no test reaches by chance. */
  rateLimits?: Partial<RateLimitOptions>;
  trustedProxies?: number;
  corsOrigins?: readonly string[];
  mailer?: Mailer;
  log?: Log;
  /** Another store than a SQLite file of its own; it is the caller's to close. */
  store?: Store;
  wrapStore?: (store: Store) => Store;
  /** Whether the admin listener has the operators' API and pages; default: not. */
  hasOperators?: boolean;
  /** Providers that were given up; default: none. */
  retired?: readonly string[];
  adminHosts?: readonly string[];
  /** Of its first user. */
  email?: string;
  certificates?: Certificates;
}

export interface MarketReply<Body = Record<string, unknown>> {
  status: number;
  headers: Headers;
  body: Body;
  text: string;
}

export interface MarketRequest {
  /** Sent as JSON, unless it is a string. */
  body?: unknown;
  headers?: Record<string, string>;
  /** The API key; null sends none. Default: the first user's. */
  key?: string | null;
  /** The address of the socket; default 192.0.2.1. */
  address?: string;
}

/** A user with a team of their own. */
export interface TestUser {
  userId: string;
  teamId: string;
  email: string;
  key: string;
}

const DEFAULT_ADDRESS = '192.0.2.1';
const PLENTY: Partial<RateLimitOptions> = {
  catalogReads: 1_000_000,
  accountRequests: 1_000_000,
  creates: 1_000_000,
  otherRequests: 1_000_000,
};
const gpuTypes = parseGpuTypes(
  readFileSync(new URL('../../fixtures/gpu-types.yaml', import.meta.url), 'utf8'),
);

/**
 * A marketplace in this process, with a real database and the providers that it is given; its first user has 1000 USD.
 * `await using` ends it, also where its clock stands still.
 */
export async function startTestMarketplace(options: TestMarketplaceOptions = {}) {
  const { clock = systemClock, providers = {}, log = silentLog, wrapStore = (store) => store } = options;
  const folder = mkdtempSync(join(tmpdir(), 'berth-marketplace-'));
  const databasePath = join(folder, 'marketplace.db');
  await putEmptyDatabase('marketplace', databasePath);
  const own = options.store === undefined ? openMarketplaceSqliteStore(databasePath) : undefined;
  const store = wrapStore((options.store ?? own) as Store);
  const sent: Parameters<Mailer['send']>[0][] = [];
  const marketplace = await startMarketplace({
    store,
    clock,
    random: steadyRandom(),
    log,
    gpuTypes,
    options: { ...defaultOptions, ...options.options },
    rateLimits: { ...defaultRateLimits, ...PLENTY, ...options.rateLimits },
    providers: Object.entries(providers).map(
      ([id, { profile = bundledProfile(id), client, sshProbe = null, markups = noMarkups }]) => ({
        profile: { ...profile, id },
        client,
        sshProbe,
        markups,
      }),
    ),
    retired: options.retired,
    mailer: options.mailer ?? collectInto(sent),
    trustedProxies: options.trustedProxies ?? 0,
    corsOrigins: options.corsOrigins ?? [],
    operatorHosts: options.hasOperators ? (options.adminHosts ?? []) : undefined,
    certificates: options.certificates,
  });
  const deps = { store, clock, random: steadyRandom() };

  /** Adds a user with a key and a team of their own that has so much to spend. */
  async function addTestUser(
    email: string,
    { creditUsd = 1000, ...changes }: { creditUsd?: number } & UserChanges = {},
  ): Promise<TestUser> {
    const { id: userId } = await addUser(deps, { email, mayMakeKeys: true, ...changes });
    const { key } = await createKey(deps, email);
    const teamId = await resolveTeam(deps, { userId });
    if (creditUsd > 0) await grant(deps, { teamId, amountMicroUsd: Math.round(creditUsd * 1_000_000) });
    return { userId, teamId, email, key };
  }

  const server = serveInProcess(fromAnyAddress(marketplace.listener), marketplace.refuse, clock);
  const admin = serveInProcess(getRequestListener(marketplace.admin.fetch), marketplace.refuse, clock);
  const fetch = (path: string, request?: InProcessRequest): Promise<Response> =>
    letSettle(clock, server.fetch(path, request));

  const user = await addTestUser(options.email ?? 'first@example.com');
  await letSettle(clock, marketplace.workers.refreshCatalogs());

  /** Sends a request; its reply must keep the published contract. */
  async function request<Body = Record<string, unknown>>(
    method: string,
    path: string,
    { body, headers = {}, key = user.key, address = DEFAULT_ADDRESS }: MarketRequest = {},
  ): Promise<MarketReply<Body>> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(path, {
      method,
      headers: {
        ...(key !== null && { Authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
        [ADDRESS_HEADER]: address,
      },
      body: text,
    });
    const reply = await response.text();
    assertReply({ method, path, response, body: reply });
    return {
      status: response.status,
      headers: response.headers,
      body: (reply === '' ? null : JSON.parse(reply)) as Body,
      text: reply,
    };
  }

  return {
    marketplace,
    /** Sends a request to any path; what the reply says is the caller's to judge. */
    fetch,
    admin: { fetch: admin.fetch },
    store,
    clock,
    user,
    sent,
    databasePath,
    request,
    addUser: addTestUser,
    async [Symbol.asyncDispose](): Promise<void> {
      await server.close();
      await admin.close();
      await letSettle(clock, marketplace.close());
      await own?.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type TestMarketplace = Awaited<ReturnType<typeof startTestMarketplace>>;

/** M: Limits: "Rate-limit headers on every response". */
function assertReply({
  method,
  path,
  response,
  body,
}: {
  method: string;
  path: string;
  response: Response;
  body: string;
}): void {
  const { status, headers } = response;
  assertKeepsMarketplaceContract({
    method,
    path: path.replace(/\?.*$/, ''),
    status,
    body,
    contentType: headers.get('content-type'),
  });
  for (const name of ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'])
    if (!/^\d+$/.test(headers.get(name) ?? ''))
      throw new Error(`${method} ${path} → ${status}: expected ${name}, got ${headers.get(name)}`);
  if (!headers.get('X-Request-Id')) throw new Error(`${method} ${path} → ${status}: expected X-Request-Id`);
}

const TICK_MS = 100;
/** So much work a promise is given before a clock that stands still has to go on for it. */
const PATIENCE_TURNS = 50;
const MAX_TICKS = 6_000;

/** Waits for a promise, and lets a virtual clock go on where it waits for time. */
async function letSettle<T>(clock: Clock, promise: Promise<T>): Promise<T> {
  if (!(clock instanceof VirtualClock)) return promise;
  let isSettled = false;
  const settled = promise.finally(() => {
    isSettled = true;
  });
  settled.catch(() => undefined);
  let turns = 0;
  for (let ticks = 0; !isSettled && ticks < MAX_TICKS; )
    if (clock.isHeld || turns++ < PATIENCE_TURNS) await new Promise((resolve) => setImmediate(resolve));
    else {
      ticks += 1;
      await clock.advance(TICK_MS);
    }
  if (!isSettled) throw new Error('it does not settle, however much time passes');
  return settled;
}

/** Says the address that a request comes from: all that a test sends comes from this machine. */
const ADDRESS_HEADER = 'x-test-address';

function fromAnyAddress(listener: RequestListener): RequestListener {
  return (request, response) => {
    const value = request.headers[ADDRESS_HEADER] ?? DEFAULT_ADDRESS;
    Object.defineProperty(request.socket, 'remoteAddress', { value, configurable: true });
    return listener(request, response);
  };
}

function bundledProfile(id: string): ProviderProfile {
  const file = bundledProfileFile(id);
  if (file === undefined) throw new Error(`no profile comes with Berth for ${id}`);
  return loadProfile(file);
}

function collectInto(sent: Parameters<Mailer['send']>[0][]): Mailer {
  return {
    send: async (mail) => {
      sent.push(mail);
    },
    close: () => undefined,
  };
}
