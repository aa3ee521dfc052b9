import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReconcileChanges } from '../../src/compose/orchestrator/platforms.ts';
import { startWithAdmin } from '../../src/compose/serve/orchestrator-admin.ts';
import { adminListener } from '../../src/compose/serve/serve.ts';
import { loadCatalog, loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { openSimulator } from '../../src/drivers/simulator/driver.ts';
import type { SimulatorBehavior } from '../../src/drivers/simulator/options.ts';
import { createOperatorKey } from '../../src/operator-kit/keys.ts';
import { createAccount, createKey } from '../../src/orchestrator/accounts/accounts.ts';
import type { Catalog, Offer } from '../../src/orchestrator/catalog/catalog.ts';
import { refuseWire } from '../../src/orchestrator/http/errors.ts';
import type { PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import type { Store } from '../../src/orchestrator/model/store.ts';
import type { Failpoint } from '../../src/orchestrator/platform/call-platform.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { Log } from '../../src/ports/log.ts';
import type { SshProbe } from '../../src/ports/ssh-probe.ts';
import type { Tracing } from '../../src/ports/tracing.ts';
import type { Certificates } from '../../src/runtime/certificates.ts';
import type { DiskRoom } from '../../src/runtime/disk-room.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { silentLog } from './doubles/log.ts';
import { steadyRandom } from './doubles/random.ts';
import { assertKeepsContract, assertKeepsOperatorContract } from './http/contract.ts';
import { serveInProcess } from './http/in-process-server.ts';
import { putEmptyDatabase } from './rows/stores.ts';
import { PATIENCE_MS } from './time/until.ts';
import { BriskClock, VirtualClock } from './time/virtual-clock.ts';

/** Machines that boot, stop and go within some milliseconds. */
const FAST_PLATFORM = {
  bootMs: [20, 60],
  stopMs: [10, 30],
  startMs: [20, 60],
  restartMs: [20, 60],
  destroyMs: [10, 30],
  volumeMs: [5, 20],
} satisfies Partial<SimulatorBehavior>;

export interface TestOptions {
  /** Merged over the defaults. */
  platform?: Partial<SimulatorBehavior>;
  reconcile?: ReconcileChanges;
  rateLimits?: Partial<Exclude<Config['rate_limits'], false>>;
  trustedProxies?: number;
  quotas?: Partial<Config['quotas']>;
  retention?: Partial<Config['retention']>;
  /** `server.admin.hosts` */
  adminHosts?: string[];
  catalog?: Catalog;
  /** Applied to that catalog, or to the one that comes with Berth. */
  changeCatalog?: (catalog: Catalog) => Catalog;
  /** The window of every offer. */
  onlineWithinMs?: number;
  /** Changes the offers of the catalog, for the platform too. */
  changeOffer?: (offer: Offer) => Offer;
  clock?: Clock;
  /** How SSH is proved; with a real handshake where it is left out. */
  probe?: SshProbe;
  log?: Log;
  /** Another store than a SQLite file of its own; it is the caller's to close. */
  store?: Store;
  failpoint?: Failpoint;
  /** Puts something between the core and the simulator, such as `withFaults`. */
  wrapDriver?: (driver: PlatformDriver) => PlatformDriver;
  /** Platforms beside the simulator, which is `default`. */
  otherPlatforms?: ReadonlyMap<string, PlatformDriver>;
  wrapStore?: (store: Store) => Store;
  environmentKey?: { digest: Buffer; accountId: string };
  diskRoom?: () => Promise<DiskRoom>;
  tracing?: Tracing;
  certificates?: Certificates;
}

export interface Reply<Body = Record<string, unknown>> {
  status: number;
  headers: Headers;
  body: Body;
  text: string;
}

export interface RequestOptions {
  /** Sent as JSON, unless it is a string. */
  body?: unknown;
  headers?: Record<string, string>;
  /** The bearer credential; null sends none. Default: the first account's key. */
  key?: string | null;
}

/** An orchestrator in this process, with a real database and a simulator of its own; `await using` ends it. */
export async function startTestOrchestrator(options: TestOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'berth-test-'));
  const databasePath = join(folder, 'berth.db');
  const config = testConfig(options);
  const catalog = withChanges(options.catalog ?? catalogOf(config.catalog), options);
  const {
    clock = new BriskClock(),
    failpoint = () => undefined,
    log = silentLog,
    wrapDriver = (driver) => driver,
    wrapStore = (store) => store,
  } = options;
  await putEmptyDatabase('orchestrator', databasePath);
  const own = options.store === undefined ? openSqliteStore(databasePath) : undefined;
  const store = wrapStore((options.store ?? own) as Store);
  const behavior = { ...FAST_PLATFORM, ...options.platform };
  const simulator: PlatformDriver = await openSimulator(
    catalog,
    `${databasePath}.simulator`,
    clock,
    behavior,
  );
  const driver = wrapDriver(simulator);
  const deps = { store, clock, random: steadyRandom() };
  const account = await createAccount(deps, 'default');
  const { key } = await createKey(deps, 'default');
  const orchestrator = await startWithAdmin({
    config,
    reconcile: { ...fastReconcile(clock), ...options.reconcile },
    catalog,
    drivers: new Map([['default', driver], ...(options.otherPlatforms ?? [])]),
    environmentKey: options.environmentKey,
    diskRoom: options.diskRoom,
    log,
    failpoint,
    probe: options.probe,
    tracing: options.tracing,
    certificates: options.certificates,
    ...deps,
  });

  const server = serveInProcess(orchestrator.listener, refuseWire, clock);
  const parts = { config, log, nextId: orchestrator.adminParts.nextId };
  const listenerOfAdmin = adminListener(orchestrator.admin, parts);
  const admin = serveInProcess(listenerOfAdmin, refuseWire, clock);

  /** Sends a request; its reply must keep the published contract. */
  async function request<Body = Record<string, unknown>>(
    method: string,
    path: string,
    { body, headers = {}, key: bearer = key }: RequestOptions = {},
  ): Promise<Reply<Body>> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await server.fetch(`/v1${path}`, {
      method,
      headers: {
        ...(bearer !== null && { Authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: text,
    });
    const reply = await response.text();
    assertKeepsContract({
      method,
      path: `/v1${path.replace(/\?.*$/, '')}`,
      status: response.status,
      contentType: response.headers.get('content-type'),
      body: reply,
    });
    return {
      status: response.status,
      headers: response.headers,
      body: (reply === '' ? null : JSON.parse(reply)) as Body,
      text: reply,
    };
  }

  return {
    account,
    key,
    store,
    driver,
    simulator,
    catalog,
    request,
    /** Sends a request to any path; what the reply says is the caller's to judge. */
    fetch: server.fetch,
    databasePath,
    clock,
    app: orchestrator.app,
    admin: { fetch: admin.fetch, routes: orchestrator.admin.routes, listener: listenerOfAdmin },
    /** The operator's API, which the admin listener answers. */
    operator: orchestrator.operator,
    console: orchestrator.console,
    /** Makes a key of the operator's API and returns it. */
    addOperator: async (name: string): Promise<string> => (await createOperatorKey(deps, { name })).key,
    /** Sends a request to the operator's API; its reply must keep the published document. */
    async operate<Body = Record<string, unknown>>(
      operatorKey: string,
      path: string,
      { method = 'GET', body }: { method?: string; body?: unknown } = {},
    ): Promise<{ status: number; body: Body }> {
      const response = await admin.fetch(`/operator/v1${path}`, {
        method,
        headers: {
          Authorization: `Bearer ${operatorKey}`,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      const { status, headers } = response;
      const reply = await response.text();
      const contentType = headers.get('content-type');
      assertKeepsOperatorContract({
        method,
        path: `/operator/v1${path.replace(/\?.*$/, '')}`,
        status,
        contentType,
        body: reply,
      });
      return { status, body: JSON.parse(reply) as Body };
    },
    listener: orchestrator.listener,
    beginDrain: orchestrator.beginDrain,
    /** Makes another tenant and returns its key. */
    async addAccount(name: string): Promise<string> {
      await createAccount(deps, name);
      return (await createKey(deps, name)).key;
    },
    /** Polls until the instance reads one of the states; `GONE` stands for 404. */
    async waitFor(id: string, ...states: string[]): Promise<Record<string, unknown>> {
      const deadline = Date.now() + PATIENCE_MS;
      for (;;) {
        const { status, body } = await request('GET', `/instances/${id}`);
        const state = status === 404 ? 'GONE' : String(body['status']);
        if (states.includes(state)) return body;
        if (Date.now() > deadline) throw new Error(`${id} reads ${state}, not ${states.join(' or ')}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await server.close();
      await admin.close();
      await orchestrator.close();
      await driver.close();
      if (options.store === undefined) await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type TestOrchestrator = Awaited<ReturnType<typeof startTestOrchestrator>>;

function testConfig({
  rateLimits,
  trustedProxies = 0,
  adminHosts = [],
  quotas,
  retention,
}: TestOptions): Config {
  const { config } = loadConfig({ flags: {}, env: {} });
  return {
    ...config,
    quotas: { ...config.quotas, ...quotas },
    retention: { ...config.retention, ...retention },
    server: {
      ...config.server,
      trusted_proxies: trustedProxies,
      admin: { ...config.server.admin, hosts: adminHosts },
    },
    rate_limits: rateLimits !== undefined && {
      requests_per_second: 50,
      creates_per_second: 5,
      ...rateLimits,
    },
  };
}

/** Where no test moves the clock, what it waits for comes soon. */
export const fastReconcile = (clock: Clock | undefined): ReconcileChanges =>
  clock instanceof VirtualClock ? {} : { watchIntervalMs: 200, probeIntervalMs: 100 };

const catalogs = new Map<string, Catalog>();

/** Read once: a catalog is never written to. */
function catalogOf(file: string): Catalog {
  const catalog = catalogs.get(file) ?? loadCatalog(file);
  catalogs.set(file, catalog);
  return catalog;
}

function withChanges(
  original: Catalog,
  { onlineWithinMs, changeCatalog = (same) => same, changeOffer = (offer) => offer }: TestOptions,
): Catalog {
  const catalog = changeCatalog(original);
  const change = (offer: Offer): Offer =>
    changeOffer(onlineWithinMs === undefined ? offer : { ...offer, onlineWithinMs });
  return { ...catalog, offers: new Map([...catalog.offers].map(([id, offer]) => [id, change(offer)])) };
}
