import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operations as marketOperations } from '../../src/marketplace/operate/operations.ts';
import { createOperatorKey } from '../../src/operator-kit/keys.ts';
import { allows, roles } from '../../src/operator-kit/model.ts';
import type { Operation } from '../../src/operator-kit/operation.ts';
import type { Store } from '../../src/orchestrator/model/store.ts';
import { operations } from '../../src/orchestrator/operate/operations.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { openMarketplaceSqliteStore } from '../../src/store/marketplace/sqlite/store.ts';
import { startTestMarketplace, type TestMarketplace } from '../support/marketplace.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

/** Whom a route answers: anybody who reaches its listener, accounts (the marketplace's users), or operators. */
type Access = 'anybody' | 'accounts' | 'operators' | 'accounts or no key';
type Routes = Readonly<Record<string, Access>>;

/** Every route of the API's listener. */
const api: Routes = {
  'GET /': 'anybody',
  'GET /healthz': 'anybody',
  'GET /readyz': 'anybody',
  'GET /openapi.json': 'anybody',
  'POST /v1/auth/token': 'anybody',
  'GET /v1/availability': 'accounts',
  'GET /v1/configurations': 'accounts',
  'GET /v1/instances': 'accounts',
  'POST /v1/instances': 'accounts',
  'GET /v1/instances/:instanceId': 'accounts',
  'DELETE /v1/instances/:instanceId': 'accounts',
  'POST /v1/instances/:instanceId/start': 'accounts',
  'POST /v1/instances/:instanceId/stop': 'accounts',
  'GET /v1/volumes/locations': 'accounts',
  'POST /v1/volumes': 'accounts',
  'GET /v1/volumes/:volumeId': 'accounts',
  'DELETE /v1/volumes/:volumeId': 'accounts',
  'POST /v1/volumes/:volumeId/attach': 'accounts',
  'POST /v1/volumes/:volumeId/detach': 'accounts',
  'GET /v1/x/volumes/usage': 'accounts',
  'GET /v1/x/instances/:instanceId/restart': 'accounts',
  'POST /v1/x/instances/:instanceId/restart': 'accounts',
  'POST /v1/x/volumes/:volumeId/resize': 'accounts',
};

/** The routes of the admin listener of either product that are not views and actions of operators. */
const open: Routes = {
  'GET /': 'anybody',
  'GET /healthz': 'anybody',
  'GET /readyz': 'anybody',
  'GET /metrics': 'anybody',
  'GET /operator/openapi.json': 'anybody',
};

function routeOf({ method, path }: Pick<Operation<never>, 'method' | 'path'>): string {
  return `${method.toUpperCase()} /operator/v1${path.replace(/\{(\w+)\}/g, ':$1')}`;
}

/** Every route of an admin listener: what its product declares is for operators. */
function adminRoutes(declared: readonly Operation<never>[]): Routes {
  return { ...open, ...Object.fromEntries(declared.map((one) => [routeOf(one), 'operators' as const])) };
}

/** On the loopback address unless the configuration says otherwise. */
const admin = adminRoutes(operations);

/** Every route of the API's listener of the marketplace. */
const marketApi: Routes = {
  'GET /': 'anybody',
  'GET /healthz': 'anybody',
  'GET /readyz': 'anybody',
  'GET /openapi.json': 'anybody',
  'GET /api/providers': 'anybody',
  'GET /api/gpu-offers': 'accounts or no key',
  'DELETE /api/deployments/:deploymentId': 'accounts',
  'DELETE /api/ssh-keys/:id': 'accounts',
  'DELETE /api/volumes/:volumeId': 'accounts',
  'GET /api/balance': 'accounts',
  'GET /api/config/system': 'accounts',
  'GET /api/deployments': 'accounts',
  'GET /api/deployments/:deploymentId': 'accounts',
  'GET /api/deployments/:deploymentId/can-terminate': 'accounts',
  'GET /api/deployments/:deploymentId/pause-quote': 'accounts',
  'GET /api/deployments/:deploymentId/reboot-status': 'accounts',
  'GET /api/gpu-offers-with-reserved': 'accounts',
  'GET /api/ssh-keys': 'accounts',
  'GET /api/ssh-keys/:id': 'accounts',
  'GET /api/teams': 'accounts',
  'GET /api/teams/details/:teamId': 'accounts',
  'GET /api/volumes': 'accounts',
  'GET /api/volumes/:volumeId': 'accounts',
  'GET /api/volumes/pricing': 'accounts',
  'GET /api/volumes/regions': 'accounts',
  'PATCH /api/deployments/:deploymentId': 'accounts',
  'PATCH /api/volumes/:volumeId': 'accounts',
  'POST /api/deployments': 'accounts',
  'POST /api/deployments/:deploymentId/pause': 'accounts',
  'POST /api/deployments/:deploymentId/restart': 'accounts',
  'POST /api/deployments/:deploymentId/resume': 'accounts',
  'POST /api/ssh-keys': 'accounts',
  'POST /api/volumes': 'accounts',
  'POST /api/volumes/:volumeId/attach': 'accounts',
  'POST /api/volumes/:volumeId/detach': 'accounts',
};

const marketAdmin = adminRoutes(marketOperations);

/** What of the console is for anybody. All else of it needs a session, which no key in a header is. */
const openPages = ['GET /console/assets/:name', 'GET /console/login', 'POST /console/login'];

let orchestrator: TestOrchestrator;
let market: TestMarketplace;
interface Keys {
  none: null;
  accounts: string;
  operators: string;
}
let keys: Keys;
let marketKeys: Keys;

beforeAll(async () => {
  orchestrator = await startTestOrchestrator({ adminHosts: ['berth.example'] });
  const { key: accounts, addOperator } = orchestrator;
  keys = { none: null, accounts, operators: await addOperator('ann') };
  market = await startTestMarketplace({ hasOperators: true, adminHosts: ['berth.example'] });
  const { key: operators } = await createOperatorKey({ ...market, random: systemRandom }, { name: 'ann' });
  marketKeys = { none: null, accounts: market.user.key, operators };
});
afterAll(async () => {
  await orchestrator[Symbol.asyncDispose]();
  await market[Symbol.asyncDispose]();
});

/** What is mounted: `ALL` is middleware, or hands on to an app that is listed too. */
function routesOf(...apps: { routes: readonly { method: string; path: string }[] }[]): string[] {
  const listed = apps.flatMap(({ routes }) => routes).filter(({ method }) => method !== 'ALL');
  return [...new Set(listed.map(({ method, path }) => `${method} ${path}`))].sort();
}

/** How a route answers a request with the key, for a thing that does not exist. */
async function statusOf(
  fetch: TestOrchestrator['fetch'],
  route: string,
  key: string | null,
  body: object = {},
) {
  const [method = '', path = ''] = route.split(' ');
  const { status } = await fetch(path.replace(':action', 'adopt').replaceAll(/:\w+/g, 'unknown'), {
    method,
    headers: {
      ...(key !== null && { Authorization: `Bearer ${key}` }),
      ...(method === 'POST' && { 'Content-Type': 'application/json' }),
    },
    ...(method === 'POST' && { body: JSON.stringify(body) }),
  });
  return status;
}

it('has a row for each route of both listeners', () => {
  expect(routesOf(orchestrator.app)).toEqual(Object.keys(api).sort());
  expect(routesOf(orchestrator.admin, orchestrator.operator)).toEqual(Object.keys(admin).sort());
  const { app, admin: listener, operator } = market.marketplace;
  expect(routesOf(app)).toEqual(Object.keys(marketApi).sort());
  expect(routesOf(listener, ...(operator === undefined ? [] : [operator]))).toEqual(
    Object.keys(marketAdmin).sort(),
  );
});

describe.each([
  ['the API', api, () => orchestrator.fetch, () => keys],
  ['the admin listener', admin, () => orchestrator.admin.fetch, () => keys],
  ["the marketplace's API", marketApi, () => market.fetch, () => marketKeys],
  ["the marketplace's admin listener", marketAdmin, () => market.admin.fetch, () => marketKeys],
])('on %s', (_listener, routes, fetch, keysOf) => {
  it.each(Object.entries(routes))('%s answers %s', async (route, access) => {
    for (const [credential, key] of Object.entries(keysOf())) {
      const status = await statusOf(fetch(), route, key);
      const isLetIn =
        access === 'anybody' ||
        access === credential ||
        (access === 'accounts or no key' && credential !== 'operators');
      expect([credential, status === 401]).toEqual([credential, !isLetIn]);
    }
  });
});

/** Bodies for actions whose example has no name of a thing. */
const bodies: Readonly<Record<string, object>> = {
  createAccount: { name: 'NOT A NAME' },
  createOperatorKey: { name: 'NOT A NAME' },
  acceptLosses: { platform: 'unknown' },
};

/** The example of an action with each text that may be any text replaced, so that it names something unknown. */
function aboutUnknown({ name, input, example = {} }: Operation<never>): object {
  const isText = (field: string): boolean => input[field]?.safeParse('unknown').success === true;
  const entries = Object.entries({ ...example, ...bodies[name] });
  const isGiven = (field: string): boolean => field in (bodies[name] ?? {});
  return Object.fromEntries(
    entries.map(([field, value]) => [field, isText(field) && !isGiven(field) ? 'unknown' : value]),
  );
}

it('writes a row of the audit log for each action of operators on something unknown [refused-actions-audited]', async () => {
  const products = [
    { all: operations, fetch: orchestrator.admin.fetch, key: keys.operators, read: orchestrator.store.read },
    { all: marketOperations, fetch: market.admin.fetch, key: marketKeys.operators, read: market.store.read },
  ];
  for (const { all, fetch, key, read } of products)
    for (const action of all.filter(({ method }) => method === 'post')) {
      // It acts on nothing that could be unknown.
      if (action.name === 'reload') continue;
      const [route, body] = [routeOf(action), aboutUnknown(action)];
      // The server writes rows of refused keys, which earlier tests sent, at any time.
      const lastOfAnn = async () =>
        (await read.audit.page({ limit: 10 })).find(({ actor }) => actor === 'ann');
      const before = await lastOfAnn();
      const status = await statusOf(fetch, route, key, body);
      const entry = await lastOfAnn();
      const isNew = entry !== undefined && entry.id !== before?.id;
      expect({ route, status, isNew, outcome: entry?.outcome }).toMatchObject({
        isNew: true,
        outcome: 'refused',
      });
      expect([400, 404]).toContain(status);
    }
});

it('refuses what needs another role, and writes that in the audit log [operator-roles]', async () => {
  const products = [
    { all: operations, deps: orchestrator, admin: orchestrator.admin },
    { all: marketOperations, deps: market, admin: market.admin },
  ];
  for (const { all, deps, admin: listener } of products)
    for (const role of roles) {
      const name = `a-${role}`;
      const { key } = await createOperatorKey({ ...deps, random: systemRandom }, { name, role });
      for (const operation of all) {
        const { method, needs, name: of } = operation;
        const route = routeOf(operation);
        const status = await statusOf(
          listener.fetch,
          route,
          key,
          method === 'post' ? aboutUnknown(operation) : {},
        );
        expect([role, route, status === 403]).toEqual([role, route, !allows(role, needs)]);
        if (status !== 403 || of === 'reload') continue;
        const [row] = await deps.store.read.audit.page({ limit: 1, actor: name });
        expect(row).toMatchObject({
          actor: name,
          outcome: 'refused',
          detail: { reason: expect.stringMatching('role') },
        });
      }
    }
});

it('writes the refused keys of operators that are only counted so far when a server ends [refused-sign-ins-at-close]', async () => {
  const clock = new VirtualClock();
  const refuseTwice = async (fetch: typeof orchestrator.fetch): Promise<void> => {
    expect(await statusOf(fetch, 'GET /operator/v1/status', 'wrong')).toBe(401);
    await clock.advance(60_000);
    expect(await statusOf(fetch, 'GET /operator/v1/status', 'wrong')).toBe(401);
  };
  const rows: unknown[] = [];
  const wrapStore = (store: Store) => ({
    ...store,
    close: async () => {
      rows.push(...(await store.read.audit.page({ limit: 9 })));
      await store.close();
    },
  });
  const berth = await startTestOrchestrator({ clock, wrapStore });
  await refuseTwice(berth.admin.fetch);
  await berth[Symbol.asyncDispose]();
  expect(rows).toHaveLength(2);
  const store = openMarketplaceSqliteStore(':memory:');
  const marketplace = await startTestMarketplace({ clock, store, hasOperators: true });
  await refuseTwice(marketplace.admin.fetch);
  await marketplace[Symbol.asyncDispose]();
  expect(await store.read.audit.page({ limit: 9 })).toHaveLength(2);
  await store.close();
});

it('shows no page of a console, and takes none of its forms, without a session', async () => {
  const { console: pages } = market.marketplace;
  if (pages === undefined) throw new Error('it has operators');
  const consoles = [
    { console: orchestrator.console, fetch: orchestrator.admin.fetch, keys },
    { console: pages, fetch: market.admin.fetch, keys: marketKeys },
  ];
  for (const one of consoles) {
    const routes = routesOf(one.console);
    expect(routes).toEqual(expect.arrayContaining([...openPages, 'GET /console/audit']));
    for (const route of routes.filter((path) => !openPages.includes(path)))
      for (const key of Object.values(one.keys)) {
        const status = await statusOf(one.fetch, route, key);
        expect([route, [302, 303, 401, 403].includes(status)]).toEqual([route, true]);
      }
  }
});

it('has nothing of one listener on the other', async () => {
  const listeners = [
    { api, admin, fetch: orchestrator.fetch, adminFetch: orchestrator.admin.fetch, keys },
    {
      api: marketApi,
      admin: marketAdmin,
      fetch: market.fetch,
      adminFetch: market.admin.fetch,
      keys: marketKeys,
    },
  ];
  for (const product of listeners)
    for (const key of Object.values(product.keys)) {
      for (const [route, access] of Object.entries(product.admin))
        if (access === 'operators') expect(await statusOf(product.fetch, route, key)).toBe(404);
      expect(await statusOf(product.fetch, 'GET /metrics', key)).toBe(404);
      for (const [route, access] of Object.entries(product.api))
        if (access === 'accounts') expect(await statusOf(product.adminFetch, route, key)).toBe(404);
    }
});

it('ends the key of an operator at once, and says no more of it than of one that never was', async () => {
  const { store, clock, addOperator, operate } = orchestrator;
  const key = await addOperator('bob');
  expect((await operate(key, '/status')).status).toBe(200);
  const record = (await store.read.operatorKeys.list()).find(({ name }) => name === 'bob');
  await store.transact((tx) => tx.operatorKeys.revoke(record?.id ?? '', clock.now()));
  const revoked = await operate(key, '/status');
  expect(revoked).toEqual({ status: 401, body: (await operate(orchestrator.key, '/status')).body });
  expect(revoked.body).toMatchObject({ error: { code: 'unauthorized' } });
});

it('answers operators only under addresses, localhost and the configured names, on either product [admin-hosts]', async () => {
  for (const { admin: listener } of [orchestrator, market])
    for (const [path, open] of [
      ['/console/login', false],
      ['/operator/openapi.json', false],
      ['/healthz', true],
      ['/readyz', true],
      ['/metrics', true],
    ] as const) {
      const statusAs = async (host: string) => (await listener.fetch(path, { headers: { host } })).status;
      const statuses = [await statusAs('berth.example:9080'), await statusAs('localhost:9080')];
      expect([path, ...statuses]).toEqual([path, 200, 200]);
      expect([path, await statusAs('evil.example:9080')]).toEqual([path, open ? 200 : 421]);
    }
});
