import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import type { InstanceStatus } from '../../src/contract/instance.ts';
import { type Store, StoreUnavailable } from '../../src/orchestrator/model/store.ts';
import { insertInstances } from '../support/databases/insert-instances.ts';
import { startServer, WireClient } from '../support/http/wire.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

let orchestrator: TestOrchestrator;
let pagesRead = 0;
let failsAtPage = Number.POSITIVE_INFINITY;
afterEach(() => orchestrator[Symbol.asyncDispose]());

/** A store that counts the pages that are read of it. */
function counted(store: Store): Store {
  const { instances } = store.read;
  const page: typeof instances.page = async (filter) => {
    if (++pagesRead >= failsAtPage) throw new StoreUnavailable('no more');
    return instances.page(filter);
  };
  return { ...store, read: { ...store.read, instances: { ...instances, page } } };
}

async function start(instances: number, status?: InstanceStatus): Promise<string[]> {
  orchestrator = await startTestOrchestrator({
    reconcile: { watchIntervalMs: 600_000_000 },
    wrapStore: counted,
  });
  const ids = await insertInstances(orchestrator, instances, status);
  pagesRead = 0;
  failsAtPage = Number.POSITIVE_INFINITY;
  return ids;
}

const bearer = () => ({ Authorization: `Bearer ${orchestrator.key}` });
/** Through the app itself: supertest reads every reply to its end, and these are left open. */
const open = async (method = 'GET') =>
  orchestrator.app.request('/v1/instances', { method, headers: bearer() });

describe('a list of many instances', () => {
  it('has each of them once, the oldest first, with no ETag; a short one has its ETag', async () => {
    const ids = await start(1_250);
    const { status, body, headers } = await orchestrator.request<{ instances: { id: string }[] }>(
      'GET',
      '/instances',
    );
    expect([status, headers.get('etag'), headers.get('content-type')]).toEqual([
      ...[200, null, 'application/json'],
    ]);
    const listed = body.instances.map(({ id }) => id);
    expect(listed).toHaveLength(1_251);
    expect(new Set(listed).size).toBe(1_251);
    expect(listed).toEqual(expect.arrayContaining(ids));
    expect(pagesRead).toBe(3);
    const short = await orchestrator.request('GET', '/instances?region=eu-helsinki');
    expect([short.text, short.headers.get('etag')]).toEqual([
      '{"instances":[]}',
      expect.stringMatching(/^"/),
    ]);
  });

  it('is to the byte what the polled reads say, of its account only, also while it changes', async () => {
    // They have no machines, and of those that failed none is missed.
    const ids = await start(1_250, 'ERROR');
    const key = await orchestrator.addAccount('other');
    const other = await orchestrator.request('POST', '/instances', { body: instanceRequest(), key });
    const list = async (path = '/instances', of?: string) =>
      (await orchestrator.request('GET', path, of === undefined ? {} : { key: of })).text;
    const polled = async (id: string, of?: string) => list(`/instances/${id}`, of);
    const before = JSON.parse(await list()) as { instances: { id: string }[] };
    const replies = await Promise.all(before.instances.map(({ id }) => polled(id)));
    expect(await list()).toBe(`{"instances":[${replies.join(',')}]}`);
    expect(await list('/instances', key)).toBe(
      `{"instances":[${await polled(String(other.body['id']), key)}]}`,
    );
    const [first = '', last = ''] = [ids[0], ids.at(-1)];
    for (const id of [first, last]) await orchestrator.request('DELETE', `/instances/${id}`);
    await orchestrator.waitFor(first, 'GONE');
    await orchestrator.waitFor(last, 'GONE');
    const after = await list();
    expect([first, last].filter((id) => after.includes(id))).toEqual([]);
    const left = before.instances.filter(({ id }) => id !== first && id !== last);
    const now = await Promise.all(left.map(({ id }) => polled(id)));
    expect(after).toBe(`{"instances":[${now.join(',')}]}`);
  });

  it('is read from the store only as fast as the client takes it', async () => {
    await start(30_000);
    await using server = await startServer(orchestrator);
    const socket = connect(server.port, '127.0.0.1').pause();
    onTestFinished(() => void socket.destroy());
    socket.write(`GET /v1/instances HTTP/1.1\r\nHost: x\r\nAuthorization: ${bearer().Authorization}\r\n\r\n`);
    let before = -1;
    await until('no more is read', async () => {
      if (pagesRead === before) return true;
      before = pagesRead;
      await setTimeout(100);
      return false;
    });
    expect(pagesRead).toBeGreaterThan(1);
    expect(pagesRead).toBeLessThan(50);
    let received = 0;
    socket.on('data', (chunk) => {
      received += chunk.length;
    });
    socket.resume();
    await until('all of it has come', () => pagesRead === 61 && received > 8_000_000);
  });

  it('breaks its connection where the store fails on the way, and is 503 where it fails at once', async () => {
    await start(1_250);
    await using server = await startServer(orchestrator);
    const url = `http://127.0.0.1:${server.port}/v1/instances`;
    failsAtPage = 2;
    const broken = await fetch(url, { headers: bearer() });
    await expect(broken.text()).rejects.toThrow();
    pagesRead = 0;
    failsAtPage = 1;
    const refused = await fetch(url, { headers: bearer() });
    expect([refused.status, await refused.json()]).toMatchObject([503, { error: { code: 'unavailable' } }]);
    failsAtPage = Number.POSITIVE_INFINITY;
    const whole = (await (await fetch(url, { headers: bearer() })).json()) as { instances: unknown[] };
    expect(whole.instances).toHaveLength(1_251);
  });

  it('is sent to one account four times at once: the fifth is 429 with Retry-After, another account is served', async () => {
    await start(600);
    const other = await orchestrator.addAccount('other');
    const held = [await open(), await open(), await open(), await open()];
    expect(held.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const fifth = await orchestrator.request('GET', '/instances');
    expect([fifth.status, fifth.headers.get('retry-after')]).toEqual([429, '2']);
    expect((await orchestrator.request('GET', '/instances', { key: other })).status).toBe(200);
    expect((await open('HEAD')).status).toBe(200);
    expect(await held[0]?.text()).toMatch(/\]\}$/);
    await held[1]?.body?.cancel();
    for (let count = 0; count < 6; count++)
      expect((await orchestrator.request('GET', '/instances')).status).toBe(200);
  });

  it('whose client goes away makes place for another', async () => {
    await start(30_000);
    await using server = await startServer(orchestrator);
    const clients = await Promise.all(Array.from({ length: 4 }, () => WireClient.open(server.port)));
    for (const client of clients) {
      client.socket.pause();
      client.request('GET', '/v1/instances', bearer());
    }
    const statusOfOne = async () => {
      const response = await open();
      await response.body?.cancel();
      return response.status;
    };
    await until('all four are being sent', async () => (await statusOfOne()) === 429);
    for (const client of clients) await client[Symbol.asyncDispose]();
    await until('there is place again', async () => (await statusOfOne()) === 200);
  });

  it('whose client goes away while its first page is read makes place for another', async () => {
    await start(600);
    for (let count = 0; count < 4; count++) {
      const client = new AbortController();
      const { signal } = client;
      // Through the app itself, which sees the signal before it has read a page.
      const answer = orchestrator.app.request('/v1/instances', { headers: bearer(), signal });
      client.abort();
      expect((await answer).status).toBe(200);
    }
    const whole = await orchestrator.request('GET', '/instances');
    expect(whole.status).toBe(200);
  });
});
