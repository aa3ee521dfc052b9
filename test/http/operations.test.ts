import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { packageVersion } from '../../src/config/package-root.ts';
import { fillUp, foreseeFullDisk } from '../support/databases/full-disk.ts';
import { collectLog } from '../support/doubles/log.ts';
import { startServer, WireClient } from '../support/http/wire.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

let orchestrator: TestOrchestrator;
let isStoreClosed: boolean;

beforeEach(async () => {
  isStoreClosed = false;
  orchestrator = await startTestOrchestrator({
    wrapStore: (store) => ({
      ...store,
      close: async () => {
        if (!isStoreClosed) await store.close();
        isStoreClosed = true;
      },
    }),
  });
});
afterEach(async () => {
  await orchestrator[Symbol.asyncDispose]();
});

const get = (path: string, headers: Record<string, string> = {}) => orchestrator.fetch(path, { headers });

const scrape = () => orchestrator.admin.fetch('/metrics');

describe('health', () => {
  it('is public: alive and ready', async () => {
    for (const path of ['/healthz', '/readyz']) {
      const response = await get(path);
      expect(response.status).toBe(200);
      expect(response.headers.get('x-request-id')).toBeTruthy();
    }
  });

  it('is alive and not ready while the store does not answer', async () => {
    await orchestrator.store.close();
    expect((await get('/healthz')).status).toBe(200);
    const response = await get('/readyz');
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ problem: 'the store does not answer' });
  });

  it('is alive and not ready while it drains, and requests are answered', async () => {
    orchestrator.beginDrain();
    expect((await get('/healthz')).status).toBe(200);
    const response = await get('/readyz');
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ problem: 'draining' });
    expect((await orchestrator.request('GET', '/configurations')).status).toBe(200);
  });
});

describe('a store that does not answer', () => {
  it('makes every route 503 with the envelope and Retry-After, never 404, 401 or 500 [store-down-503]', async () => {
    const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
    await orchestrator.store.close();
    for (const [method, path, sent] of [
      ['GET', '/configurations', undefined],
      ['GET', '/availability', undefined],
      ['GET', '/instances', undefined],
      ['GET', '/instances/unknown', undefined],
      ['POST', '/instances', instanceRequest()],
      ['DELETE', `/instances/${body['id']}`, undefined],
      ['POST', `/instances/${body['id']}/stop`, undefined],
      ['GET', '/volumes/unknown', undefined],
      ['DELETE', '/volumes/unknown', undefined],
      ['POST', '/auth/token', { api_key: orchestrator.key }],
      ['POST', '/auth/token', { username: 'default', password: 'x' }],
    ] as const) {
      const reply = await orchestrator.request(method, path, { ...(sent && { body: sent }) });
      expect([method, path, reply.status]).toEqual([method, path, 503]);
      expect(reply.body).toMatchObject({ error: { code: 'unavailable' } });
      expect(reply.headers.get('retry-after')).toBe('5');
      expect(reply.text).not.toMatch(/sqlite|database|closed/i);
    }
    const stranger = await orchestrator.request('GET', '/instances', { key: 'berth_never_seen' });
    expect(stranger.status).toBe(503);
  });

  it('leaves the metrics readable: that is when they are needed', async () => {
    await orchestrator.store.close();
    const response = await scrape();
    expect(response.status).toBe(200);
    const text = await response.text();
    expect(text).toMatch(/^berth_store_up 0$/m);
    expect(text).toMatch(/^berth_platform_up\{platform="default"\} 1$/m);
  });
});

describe('a full disk', () => {
  it('is told by /readyz, the metrics and one alarm until a write works again; reads go on [full-disk-orchestrator]', async () => {
    const disk = foreseeFullDisk();
    const clock = new VirtualClock();
    const { log, lines } = collectLog();
    await using full = await startTestOrchestrator({ clock, log });
    const create = () => full.request('POST', '/instances', { body: instanceRequest() });
    const readings = async () => ({
      ready: [(await full.fetch('/readyz')).status, (await full.admin.fetch('/readyz')).status],
      up: /^berth_store_up (.)$/m.exec(await (await full.admin.fetch('/metrics')).text())?.[1],
    });
    const first = await create();
    expect(first.status).toBe(201);
    expect(await readings()).toEqual({ ready: [200, 200], up: '1' });

    disk.begin();
    await fillUp(create);
    expect(await readings()).toEqual({ ready: [503, 503], up: '0' });
    expect(await (await full.fetch('/readyz')).json()).toMatchObject({
      problem: 'the store accepts no writes',
    });
    await clock.advance(20_000);
    expect(await readings()).toEqual({ ready: [503, 503], up: '0' });
    expect((await full.request('GET', '/instances')).status).toBe(200);
    const alarms = () => lines.filter(({ message }) => message.includes('takes no writes'));
    expect(alarms()).toEqual([expect.objectContaining({ level: 'error' })]);
    expect(String(alarms()[0]?.fields['err'])).toContain('SQLITE_FULL');
    expect(alarms()[0]?.message).toContain('(SQLITE_FULL: database or disk is full)');

    disk.end();
    await clock.advance(3_000);
    expect(await readings()).toEqual({ ready: [200, 200], up: '1' });
    expect((await full.request('DELETE', `/instances/${first.body['id']}`)).status).toBe(200);
    const ends = lines.filter(({ message }) => message.includes('accepts writes again'));
    expect(ends).toMatchObject([{ level: 'info', fields: { seconds: expect.any(Number) } }]);
    expect(alarms()).toHaveLength(1);
  });
});

describe('metrics', () => {
  it('have names and labels that stay', async () => {
    const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
    await orchestrator.request('GET', '/instances/nope');
    await orchestrator.request('GET', `/no-such-thing-${'x'.repeat(50)}`);
    await using server = await startServer(orchestrator);
    await using client = await WireClient.open(server.port);
    const path = `/v1/instances/${body['id']}`;
    for (let count = 0; count < 3; count++) {
      client.request('GET', path, { Authorization: `Bearer ${orchestrator.key}` });
      await client.reply('GET', path);
    }
    const response = await scrape();
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
    const text = await response.text();
    for (const name of [
      'berth_build_info',
      'berth_http_requests_total',
      'berth_http_request_seconds_bucket',
      'berth_polled_reads_total',
      'berth_instances',
      'berth_work_open',
      'berth_work_overdue_seconds',
      'berth_platform_up',
      'berth_store_up',
      'process_cpu_seconds_total',
      'nodejs_eventloop_lag_seconds',
    ])
      expect(text).toMatch(new RegExp(`^${name}[{ ]`, 'm'));
    expect(text).toMatch(/^nodejs_active_resources[{ ]/m);
    expect(text).not.toMatch(/^# TYPE \w+_total (?!counter$)/m);
    expect(text).toContain(`berth_build_info{version="${packageVersion()}",node="${process.version}"} 1\n`);
    expect(text).toContain('berth_http_requests_total{method="POST",route="/v1/instances",status="201"} 1');
    expect(text).toContain('route="/v1/instances/:instanceId",status="404"} 1');
    expect(text).toMatch(/^berth_polled_reads_total [1-9]/m);
    expect(text).not.toContain('xxxx');
    expect(text).not.toContain(String(body['id']));
  });

  it('are on the admin listener alone, which tells of the health too', async () => {
    expect((await get('/metrics')).status).toBe(404);
    expect((await orchestrator.admin.fetch('/healthz')).status).toBe(200);
    expect((await orchestrator.admin.fetch('/readyz')).status).toBe(200);
    orchestrator.beginDrain();
    expect((await orchestrator.admin.fetch('/readyz')).status).toBe(503);
    expect((await orchestrator.admin.fetch('/')).headers.get('location')).toBe('/console');
    for (const path of ['/v1/instances', '/openapi.json'])
      expect((await orchestrator.admin.fetch(path)).status).toBe(404);
  });
});

it('tells at / where the API, its description and the health are', async () => {
  expect(await (await get('/')).json()).toEqual({
    title: 'Provider Orchestrator API',
    api: '/v1',
    openapi: '/openapi.json',
    health: '/healthz',
    readiness: '/readyz',
  });
});

describe('the description of the API', () => {
  it('is served at /openapi.json', async () => {
    const document = (await (await get('/openapi.json')).json()) as { openapi: string; paths: object };
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths)).toHaveLength(15);
  });

  it('is outside of /v1, as is all that is not the contract', async () => {
    for (const path of ['/healthz', '/readyz', '/openapi.json']) {
      expect((await get(path)).status).toBe(200);
      expect((await orchestrator.request('GET', path)).status).toBe(404);
      expect((await get(`/v1${path}`)).status).toBe(401);
    }
  });
});
