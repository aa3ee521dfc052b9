import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageVersion } from '../../src/config/package-root.ts';
import { HttpServer } from '../../src/http/wire/server.ts';
import { StoreUnavailable } from '../../src/ports/errors.ts';
import { fillUp, foreseeFullDisk } from '../support/databases/full-disk.ts';
import { collectLog } from '../support/doubles/log.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { WireClient } from '../support/http/wire.ts';
import { startTestMarketplace, type TestMarketplace } from '../support/marketplace.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const document: { paths: Record<string, Record<string, unknown>> } = JSON.parse(
  readFileSync(new URL('../../openapi/marketplace.json', import.meta.url), 'utf8'),
);
/** All but those that need no credential. */
const endpoints = Object.entries(document.paths)
  .flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => ({ method: method.toUpperCase(), path })),
  )
  .filter(({ path }) => path !== '/api/providers' && path !== '/api/gpu-offers');

let market: TestMarketplace;
beforeAll(async () => {
  market = await startTestMarketplace({ clock: new VirtualClock() });
});
afterAll(() => market[Symbol.asyncDispose]());

const issuesOf = (body: Record<string, unknown>) =>
  (body['details'] as { issues: { path: string; message: string }[] }).issues;

describe('M: Authentication', () => {
  it.each([
    ['GET', '/api/config/system'],
    ['GET', '/api/gpu-offers-with-reserved'],
    ['GET', '/api/deployments'],
    ['POST', '/api/deployments'],
    ['GET', '/api/ssh-keys'],
    ['GET', '/api/volumes'],
    ['GET', '/api/teams'],
    ['POST', '/api/providers'],
    ['GET', '/api/none'],
  ])('asks for a credential: %s %s [credential-needed-unknown-path]', async (method, path) => {
    for (const key of [null, 'wrong', 'berth_wrong_000000']) {
      const { status, body, headers } = await market.request(method, path, { key });
      expect([status, body['code'], headers.get('WWW-Authenticate')]).toEqual([
        401,
        'UNAUTHORIZED',
        'Bearer',
      ]);
    }
  });

  it.each(endpoints)(
    'asks for a credential at each other endpoint: $method $path [credential-needed]',
    async ({ method, path }) => {
      const { status, body } = await market.request(method, path, { key: null });
      expect([status, body['code']]).toEqual([401, 'UNAUTHORIZED']);
    },
  );

  it('asks for none for the providers; for the offers one is optional, and a wrong one is refused [public-endpoints]', async () => {
    expect((await market.request('GET', '/api/providers', { key: null })).status).toBe(200);
    expect((await market.request('GET', '/api/providers', { key: 'wrong' })).status).toBe(200);
    expect((await market.request('GET', '/api/gpu-offers', { key: null })).status).toBe(200);
    expect((await market.request('GET', '/api/gpu-offers', { key: 'wrong' })).status).toBe(401);
    const basic = { headers: { Authorization: 'Basic abc' }, key: null };
    expect((await market.request('GET', '/api/gpu-offers', basic)).status).toBe(401);
  });

  it('keeps what is for one caller out of shared caches', async () => {
    const { headers } = await market.request('GET', '/api/teams');
    expect(headers.get('Cache-Control')).toBe('private, no-store');
  });
});

describe('M: Errors', () => {
  it.each([
    ['GET', '/api/none', 404, 'NOT_FOUND'],
    ['GET', '/none', 404, 'NOT_FOUND'],
    ['GET', '/docs/none.js', 404, 'NOT_FOUND'],
    ['PUT', '/api/teams', 405, 'METHOD_NOT_ALLOWED'],
    ['OPTIONS', '/api/teams', 405, 'METHOD_NOT_ALLOWED'],
    ['DELETE', '/api/deployments', 405, 'METHOD_NOT_ALLOWED'],
  ])('%s %s is %i [error-statuses]', async (method, path, status, code) => {
    expect(await market.request(method, path)).toMatchObject({ status, body: { code } });
  });

  it('says which methods there are', async () => {
    const { headers } = await market.request('PUT', '/api/deployments');
    expect(headers.get('Allow')).toBe('POST, GET, HEAD');
  });

  it('answers HEAD as GET, without a body', async () => {
    expect(await market.request('HEAD', '/api/teams')).toMatchObject({ status: 200, text: '' });
  });

  it.each([
    ['a body that is too large', { body: { name: 'x'.repeat(1_100_000) } }, 413, 'PAYLOAD_TOO_LARGE'],
    ['a body that is no JSON', { body: '{' }, 400, 'VALIDATION_ERROR'],
    ['a list', { body: '[]' }, 400, 'VALIDATION_ERROR'],
    [
      'another content type',
      { body: '{}', headers: { 'Content-Type': 'text/plain' } },
      400,
      'VALIDATION_ERROR',
    ],
  ])('refuses %s [body-refused]', async (_what, options, status, code) => {
    expect(await market.request('POST', '/api/ssh-keys', options)).toMatchObject({ status, body: { code } });
  });

  it.each([
    ['/api/gpu-offers?page=0', 'page'],
    ['/api/gpu-offers?page=1.5', 'page'],
    ['/api/gpu-offers?page=one', 'page'],
    ['/api/gpu-offers?limit=-1', 'limit'],
    ['/api/gpu-offers?limit=1&limit=2', 'limit'],
    ['/api/gpu-offers?sortBy=luck', 'sortBy'],
    ['/api/gpu-offers?sortOrder=up', 'sortOrder'],
    ['/api/gpu-offers?instanceType=vm', 'instanceType'],
    ['/api/gpu-offers?computeType=tpu', 'computeType'],
    ['/api/deployments?status=lost', 'status'],
    ['/api/volumes?status=error', 'status'],
    ['/api/volumes?page=', 'page'],
    ['/api/balance?all=no', 'all'],
    ['/api/deployments?teamId=%00', 'teamId'],
  ])('says what is wrong with a query: %s [query-errors]', async (path, field) => {
    const { status, body } = await market.request('GET', path);
    expect([status, body['code']]).toEqual([400, 'VALIDATION_ERROR']);
    expect(issuesOf(body).map((issue) => issue.path)).toEqual([field]);
  });

  it.each([
    '/api/gpu-offers?instanceType=spot&computeType=gpu&sortOrder=desc&page=2&limit=5&color=red',
    '/api/balance?all=false',
    '/api/deployments?status=inactive',
  ])('takes what is right, and ignores what it does not know: %s', async (path) => {
    expect((await market.request('GET', path)).status).toBe(200);
  });

  it('names every field of a body that is wrong [body-errors]', async () => {
    const body = {
      provider: 1,
      gpuCount: 'one',
      ssh_public_key: null,
      sshKeyId: null,
      cloudInit: { runcmd: 'ls' },
      color: 'red',
    };
    const { status, body: error } = await market.request('POST', '/api/deployments', { body });
    expect(status).toBe(400);
    expect(
      issuesOf(error)
        .map(({ path }) => path)
        .sort(),
    ).toEqual(
      [
        'cloudInit.runcmd',
        'gpuCount',
        'offerId',
        'operatingSystem',
        'provider',
        'region',
        'ssh_public_key',
      ].sort(),
    );
  });

  it('says nothing of what broke inside, and tells the log [internal-errors-hidden]', async () => {
    const logged: unknown[] = [];
    await using broken = await startTestMarketplace({
      clock: new VirtualClock(),
      log: { debug() {}, info() {}, warn() {}, error: (fields) => void logged.push(fields) },
      wrapStore: (store) => ({
        ...store,
        read: {
          ...store.read,
          sshKeys: { ...store.read.sshKeys, byId: () => Promise.reject(new Error('secret')) },
        },
      }),
    });
    const reply = await broken.request('GET', '/api/ssh-keys/ssh-1');
    expect(reply).toMatchObject({ status: 500, body: { code: 'INTERNAL_ERROR' } });
    expect(reply.text).not.toContain('secret');
    expect(logged).toMatchObject([{ code: 'INTERNAL_ERROR', request_id: reply.headers.get('X-Request-Id') }]);
  });
});

it('does not answer a write whose outcome is unknown as if it had not been done [write-outcome-unknown]', async () => {
  let isLost = false;
  await using unsure = await startTestMarketplace({
    clock: new VirtualClock(),
    wrapStore: (store) => ({
      ...store,
      transact: async (body) => {
        const result = await store.transact(body);
        if (isLost) throw new StoreUnavailable('the answer to the commit was lost');
        return result;
      },
    }),
  });
  isLost = true;
  const body = { name: 'laptop', publicKey: newPublicKey(), teamId: unsure.user.teamId };
  const reply = await unsure.request('POST', '/api/ssh-keys', { body });
  expect(reply).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
  expect(reply.body['error']).toMatch(/does not know whether the request was carried out; check before/);
  expect((await unsure.request<object[]>('GET', '/api/ssh-keys')).body).toMatchObject([{ name: 'laptop' }]);
});

describe('below HTTP', () => {
  it.each([
    ['no request', 'NONSENSE\r\n\r\n', 400, 'VALIDATION_ERROR'],
    ['no Host', 'GET /api/providers HTTP/1.1\r\n\r\n', 400, 'VALIDATION_ERROR'],
    ['two Hosts', 'GET /api/providers HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400, 'VALIDATION_ERROR'],
    ['a path that climbs', 'GET /api/../x HTTP/1.1\r\nHost: a\r\n\r\n', 404, 'NOT_FOUND'],
    ['large headers', `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
  ])(
    '%s is answered in the same shape, with the same headers [below-http-errors]',
    async (_what, bytes, status, code) => {
      const { listener, refuse } = market.marketplace;
      const silent = { debug() {}, info() {}, warn() {}, error() {} };
      const options = {
        host: '127.0.0.1',
        port: 0,
        requestTimeoutMs: 5_000,
        nextId: () => 'id',
        refuse,
        log: silent,
      };
      const server = new HttpServer(listener, options);
      const port = await server.listen(options);
      try {
        await using client = await WireClient.open(port);
        client.send(bytes);
        const reply = await client.rawReply();
        expect(reply?.status).toBe(status);
        expect(JSON.parse(reply?.body ?? '')).toMatchObject({ code, error: expect.any(String) });
        for (const name of [
          'x-ratelimit-limit',
          'x-ratelimit-remaining',
          'x-ratelimit-reset',
          'x-request-id',
        ])
          expect(reply?.headers.get(name)).toBeTruthy();
      } finally {
        await server.close(0);
      }
    },
  );
});

const APP = 'https://app.example.com';

describe.each([
  ['of a configured origin', [APP], APP, APP, 'Origin'],
  ['of another origin', [APP], 'https://other.example.com', null, 'Origin'],
  ['without configured origins', [], APP, null, null],
])('a page %s', (_what, corsOrigins, origin, allowed, vary) => {
  it('reads every reply, also a refusal, only if its origin is configured [cors]', async () => {
    const rateLimits = { otherRequests: 1 };
    await using shop = await startTestMarketplace({ clock: new VirtualClock(), corsOrigins, rateLimits });
    const ask = (options: { key?: null }) =>
      shop.request('GET', '/api/config/system', { ...options, headers: { Origin: origin } });
    const replies = [
      await ask({ key: null }),
      await ask({}),
      await shop.request('GET', '/api/none', { headers: { Origin: origin } }),
    ];
    expect(replies.map(({ status }) => status)).toEqual([401, 429, 429]);
    for (const { headers } of replies) {
      expect([headers.get('Access-Control-Allow-Origin'), headers.get('Vary')]).toEqual([allowed, vary]);
      const exposed = headers.get('Access-Control-Expose-Headers')?.split(',') ?? null;
      if (allowed === null) expect(exposed).toBeNull();
      else
        expect(exposed).toEqual(
          expect.arrayContaining(['X-RateLimit-Remaining', 'X-RateLimit-Reset', 'Retry-After']),
        );
    }
    const asked = { Origin: origin, 'Access-Control-Request-Method': 'POST' };
    const preflight = await shop.fetch('/api/deployments', { method: 'OPTIONS', headers: asked });
    if (allowed === null) expect(preflight.status).not.toBe(204);
    else {
      expect([preflight.status, preflight.headers.get('Access-Control-Allow-Origin')]).toEqual([204, APP]);
      expect(preflight.headers.get('Access-Control-Allow-Headers')).toContain('Authorization');
    }
  });
});

describe('beside the API', () => {
  it('tells of its health, its numbers and itself', async () => {
    const get = (path: string) => market.fetch(path);
    expect(await (await get('/healthz')).json()).toEqual({ status: 'ok' });
    expect(await (await get('/readyz')).json()).toEqual({ status: 'ready' });
    expect(await (await get('/')).json()).toMatchObject({ api: '/api', docs: '/docs', health: '/healthz' });
    expect((await get('/docs')).headers.get('Content-Type')).toContain('text/html');
    expect(await (await get('/openapi.json')).json()).toMatchObject({ openapi: '3.1.0' });
  });

  it('tells its numbers on the admin listener alone', async () => {
    expect((await market.fetch('/metrics')).status).toBe(404);
    const { admin } = market;
    const text = await (await admin.fetch('/metrics')).text();
    expect(text).toContain('berth_marketplace_http_requests_total');
    expect(text).toContain(`berth_build_info{version="${packageVersion()}",node="${process.version}"} 1\n`);
    expect(text).toMatch(/^berth_marketplace_deployments\{status="running"\} 0$/m);
    expect((await admin.fetch('/healthz')).status).toBe(200);
    expect((await admin.fetch('/readyz')).status).toBe(200);
  });

  it('tells of a full disk by /readyz, the metrics and one alarm until a write works again; reads go on [full-disk-marketplace]', async () => {
    const disk = foreseeFullDisk();
    const clock = new VirtualClock();
    const { log, lines } = collectLog();
    await using full = await startTestMarketplace({ clock, log });
    const { fetch, admin, request } = full;
    const write = () =>
      request('POST', '/api/ssh-keys', { body: { name: 'laptop', publicKey: newPublicKey() } });
    const health = async () => ({
      ready: [(await fetch('/readyz')).status, (await admin.fetch('/readyz')).status],
      up: /^berth_marketplace_store_up (.)$/m.exec(await (await admin.fetch('/metrics')).text())?.[1],
    });
    expect(await health()).toEqual({ ready: [200, 200], up: '1' });

    disk.begin();
    await fillUp(write);
    await clock.advance(20_000);
    expect(await health()).toEqual({ ready: [503, 503], up: '0' });
    expect((await request('GET', '/api/ssh-keys')).status).toBe(200);
    const alarms = () => lines.filter(({ message }) => message.includes('takes no writes'));
    expect(alarms()).toMatchObject([{ level: 'error' }]);

    disk.end();
    await clock.advance(3_000);
    expect(await health()).toEqual({ ready: [200, 200], up: '1' });
    expect((await write()).status).toBe(201);
    expect(lines.filter(({ message }) => message.includes('accepts writes again'))).toHaveLength(1);
    expect(alarms()).toHaveLength(1);
  });

  it('is not ready once it drains', async () => {
    await using draining = await startTestMarketplace({ clock: new VirtualClock() });
    draining.marketplace.beginDrain();
    expect((await draining.fetch('/readyz')).status).toBe(503);
    expect((await draining.request('GET', '/api/providers')).status).toBe(200);
  });
});
