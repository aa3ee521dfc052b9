import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { startServer } from '../../../test/support/http/wire.ts';
import { putEmptyDatabase } from '../../../test/support/rows/stores.ts';
import { loadCatalog } from '../../config/load.ts';
import { packageVersion } from '../../config/package-root.ts';
import type { ConsoleEnv } from '../../operator-kit/console/deps.ts';
import { createOperatorKey, Operators } from '../../operator-kit/keys.ts';
import type { Clock } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import { systemClock, systemRandom } from '../../runtime/system.ts';
import { openSqliteStore } from '../../store/sqlite/store.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { ObservedHost } from '../model/inventory.ts';
import { createConsole, pages } from './app.ts';
import { STUCK } from './demo-fleet.fixture.ts';
import type { ConsoleDeps, PlatformState } from './deps.ts';

const up: PlatformState = {
  driver: { manifest: { name: 'libvirt' } },
  health: { isUp: true, isSuspect: false, isTaken: false },
  losses: { held: 0 },
};
const down: PlatformState = {
  driver: { manifest: { name: 'incus' } },
  health: { isUp: false, isSuspect: false, isTaken: false },
  losses: { held: 0 },
};

const gpu = (slot: number) => ({ id: `0000:${slot}1:00.0`, type: 'H100_SXM' });
const demoHosts: readonly ObservedHost[] = [
  {
    host: 'gpu-host-1',
    state: 'open',
    vcpus: { total: 192, taken: 104 },
    memoryGb: { total: 1_920, taken: 1_040 },
    diskGb: { total: 14_000, taken: 3_250 },
    devices: [
      { ...gpu(1), state: 'claimed', ref: 'berth-inst-1', detail: 'a domain has it' },
      { ...gpu(4), state: 'free' },
      { ...gpu(8), state: 'quarantined', detail: 'it did not come back from its reset <at once>' },
    ],
  },
  { host: 'gpu-host-2', state: 'closed', detail: 'an operator has cordoned it in Berth' },
  { host: 'gpu-host-12', state: 'silent', detail: 'gpu-host-12 does not answer within 5000 ms' },
];

/** Moves offers that are sold in only one region to a second platform. */
function onTwoPlatforms(catalog: Catalog): Catalog {
  const offers = [...catalog.offers].map(
    ([id, offer]) => [id, offer.placements.length === 1 ? { ...offer, platform: 'west' } : offer] as const,
  );
  return { ...catalog, offers: new Map(offers) };
}

/** The console on its own store, without an orchestrator. The test writes its rows. */
export async function startConsole({ clock = systemClock }: { clock?: Clock } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'berth-console-'));
  const path = join(folder, 'berth.db');
  await putEmptyDatabase('orchestrator', path);
  const store = openSqliteStore(path);
  const deps = { store, clock, random: systemRandom };
  const { key, record } = await createOperatorKey(deps, 'mara');
  const silent = () => undefined;
  const errors: object[] = [];
  const infos: object[] = [];
  const catalog = onTwoPlatforms(loadCatalog('fixtures/catalogs/halyard.yaml'));
  const parts: ConsoleDeps = {
    ...deps,
    catalog,
    operators: new Operators({ ...deps, log: { warn: () => undefined } }),
    states: new Map([
      ['default', up],
      ['west', down],
    ]),
    platforms: new Map([
      [
        'default',
        {
          driver: 'libvirt',
          placesOnHosts: true,
          inventory: {
            ageMs: 9_000,
            freeUnits: new Map([['h100-sxm-1x', 14]]),
            hosts: demoHosts,
            limitedBy: ['quota: cores 40 of 40 <now>'],
          },
        },
      ],
      ['west', { driver: 'incus', placesOnHosts: false }],
    ]),
    reload: () => Promise.reject(new Fatal('it has no server')),
    maxLosses: { share: 0.1, least: 3 },
    manifests: {
      of: ({ platform }) => {
        throw new Fatal(`${platform} has no driver here`);
      },
    },
    quotas: { instances: undefined, volumes: undefined, storageGb: undefined, liveTokens: 1 },
    supply: {
      isOpen: (platform) => platform === 'default',
      unclaimedUnits: () => 0,
      platformUnits: () => undefined,
      obstacles: () => [],
      isCountPartial: () => false,
      areStorageClaimsComplete: () => true,
      unclaimedStorageGb: () => 0,
    },
    log: {
      debug: silent,
      info: (fields) => void infos.push(fields),
      warn: silent,
      error: (fields) => void errors.push(fields),
    },
    version: packageVersion(),
    server: 'berth-1',
    trustedProxies: 0,
  };
  const built = createConsole(parts);
  const app = new Hono<ConsoleEnv>().all('/console/*', ({ req, env }) => built.fetch(req.raw, env));
  let served: Awaited<ReturnType<typeof startServer>> | undefined;
  return {
    store,
    /** Log entries at level error. */
    errors,
    /** Log entries at level info. */
    infos,
    catalog,
    clock,
    key,
    keyId: record.id,
    /** Sends a request without adding a cookie. */
    request: (to: string, init?: RequestInit) => app.request(`http://console.test${to}`, init),
    /** Sends a request to another server on the same database. */
    requestElsewhere: (to: string, init?: RequestInit) =>
      createConsole(parts).request(`http://console.test${to}`, init),
    /** Logs in as a browser does. Returns the cookie. */
    async logIn(): Promise<string> {
      const reply = await app.request('http://console.test/console/login', {
        method: 'POST',
        body: new URLSearchParams({ key }),
      });
      return reply.headers.get('set-cookie')?.split(';')[0] ?? '';
    },
    /** Logs in, and sends requests as a browser with that session does. */
    async openTab() {
      const cookie = await this.logIn();
      const get = (path: string, headers: Record<string, string> = {}) =>
        this.request(path, { headers: { cookie, ...headers } });
      const read = async (path: string) => (await get(path)).text();
      const post = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
        this.request(path, {
          method: 'POST',
          headers: { cookie, ...headers },
          body: new URLSearchParams(fields),
        });
      return { cookie, get, read, post };
    },
    /** Serves the console on a free port. Returns its origin. */
    async listen(): Promise<string> {
      served = await startServer({ listener: getRequestListener(app.fetch) });
      return `http://127.0.0.1:${served.port}`;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await served?.server.close(0);
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type TestConsole = Awaited<ReturnType<typeof startConsole>>;
export type Tab = Awaited<ReturnType<TestConsole['openTab']>>;

export const csrfOf = (page: string): string => /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';

/** Actions with a dry run, and the query of the page that shows it. */
const toConfirm = {
  retryInstance: `instanceId=${STUCK}`,
  destroyInstance: `instanceId=${STUCK}`,
  cordon: 'kind=offer&name=l40s-1x',
  planMaintenance: 'kind=offer&name=l40s-1x',
  deleteAccount: 'account=marketplace',
};
/** Every page, and every dry run. */
export const paths = [
  ...pages.map(
    ([path]) => `/console${path === '/' ? '' : path.replace(':id', STUCK).replace(':platform', 'default')}`,
  ),
  ...Object.entries(toConfirm).map(([action, query]) => `/console/actions/${action}?${query}`),
];
