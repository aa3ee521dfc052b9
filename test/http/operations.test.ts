import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest } from '../support/requests.ts';
import { startServer, WireClient } from '../support/wire.ts';

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

const get = (path: string, headers: Record<string, string> = {}) =>
  orchestrator.app.request(path, { headers });

describe('health', () => {
  it('is told to anybody: alive and ready', async () => {
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
  it('makes every route 503 with the envelope and Retry-After, never 404, 401 or 500', async () => {
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
    const response = await get('/metrics');
    expect(response.status).toBe(200);
    const text = await response.text();
    expect(text).toMatch(/^berth_store_up 0$/m);
    expect(text).toMatch(/^berth_platform_up 1$/m);
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
    const response = await get('/metrics');
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
    const text = await response.text();
    for (const name of [
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
    expect(text).toContain('berth_http_requests_total{method="POST",route="/v1/instances",status="201"} 1');
    expect(text).toContain('route="/v1/instances/:instanceId",status="404"} 1');
    expect(text).toMatch(/^berth_polled_reads_total [1-9]/m);
    expect(text).not.toContain('xxxx');
    expect(text).not.toContain(String(body['id']));
  });
});

describe('the description of the API', () => {
  it('is served at /openapi.json', async () => {
    const document = (await (await get('/openapi.json')).json()) as { openapi: string; paths: object };
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths)).toHaveLength(14);
  });

  it('is readable at /docs, whose policy admits its own script and no other', async () => {
    const response = await get('/docs');
    expect(response.headers.get('content-type')).toMatch(/^text\/html/);
    const page = await response.text();
    const policy = response.headers.get('content-security-policy') ?? '';
    const inline = [...page.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, script = '']) => script);
    expect(inline).toHaveLength(1);
    for (const script of inline)
      expect(policy).toContain(`'sha256-${createHash('sha256').update(script).digest('base64')}'`);
    const scripts = /script-src ([^;]*)/.exec(policy)?.[1] ?? '';
    expect(scripts).not.toMatch(/unsafe|\*|http/);
    for (const [, file = ''] of page.matchAll(/(?:src|href)="([^"]+)"/g)) {
      expect(file).toMatch(/^\/docs\//);
      const asset = await get(file);
      expect([file, asset.status]).toEqual([file, 200]);
      expect(asset.headers.get('content-type')).toMatch(/^text\/(css|javascript)/);
      expect((await asset.arrayBuffer()).byteLength).toBeGreaterThan(10_000);
    }
    expect(page).toContain('/openapi.json');
  });

  it('is outside of /v1, as is all that is not the contract', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs']) {
      expect((await get(path)).status).toBe(200);
      expect((await orchestrator.request('GET', path)).status).toBe(404);
      expect((await get(`/v1${path}`)).status).toBe(401);
    }
  });
});
