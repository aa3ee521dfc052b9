import { expect, it, onTestFinished } from 'vitest';
import type { Changes } from '../../src/contract/extensions.ts';
import { collectLog } from '../support/doubles/log.ts';
import { startServer, WireClient } from '../support/http/wire.ts';
import { startTestOrchestrator, type TestOptions } from '../support/orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

async function start(options: TestOptions = {}) {
  const orchestrator = await startTestOrchestrator(options);
  onTestFinished(() => orchestrator[Symbol.asyncDispose]());
  const ask = async (query: Record<string, string> = {}, key = orchestrator.key) =>
    orchestrator.request<Changes>('GET', `/x/changes?${new URLSearchParams(query)}`, { key });
  const cursor = async (key?: string) => (await ask({}, key)).body.cursor;
  const create = async (key = orchestrator.key) => {
    const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest(), key });
    return String(body['id']);
  };
  return { ...orchestrator, ask, cursor, create };
}

/** An orchestrator whose work stands still, so that only requests change rows. */
const still = (options: TestOptions = {}) => start({ clock: new VirtualClock(), ...options });

it('lists what changed since a cursor, and the same again for the same cursor', async () => {
  const { ask, cursor, create, request } = await still();
  const first = await ask();
  expect(first.body).toEqual({ cursor: first.body.cursor, reset: true, changes: [], more: false });
  const since = first.body.cursor;
  const instance = await create();
  const { body: volume } = await request('POST', '/volumes', { body: volumeRequest() });
  const changes = [
    { kind: 'instance', id: instance, version: 1 },
    { kind: 'volume', id: volume['id'], version: expect.any(Number) },
  ];
  const second = await ask({ since });
  expect(second.body).toEqual({ since, cursor: second.body.cursor, reset: false, changes, more: false });
  expect((await ask({ since })).body.changes).toEqual(changes);
  expect((await ask({ since: second.body.cursor })).body.changes).toEqual([]);
  await request('DELETE', `/instances/${instance}`);
  expect((await ask({ since: second.body.cursor })).body.changes).toMatchObject([{ id: instance }]);
  expect((await ask({ since: await cursor() })).body.changes).toEqual([]);
});

it('is announced by each offer', async () => {
  const { request } = await still();
  const { body } = await request<{ configurations: { extras: object }[] }>('GET', '/configurations');
  expect(body.configurations.length).toBeGreaterThan(0);
  for (const { extras } of body.configurations) expect(extras).toMatchObject({ berth: { changes: true } });
});

it('shows an account nothing of another one, whose cursor is of another epoch', async () => {
  const { ask, cursor, create, addAccount } = await still();
  const other = await addAccount('other');
  const since = await cursor();
  const others = await cursor(other);
  await create(other);
  expect((await ask({ since })).body.changes).toEqual([]);
  expect((await ask({ since: others })).body).toMatchObject({ reset: true, changes: [], more: false });
});

it.each([
  ['nothing', ''],
  ['another text', 'x'],
  ['JSON of another form', Buffer.from('{"a":1}').toString('base64url')],
  ['a position that cannot be', Buffer.from('[1,"x",1,-1,"",[]]').toString('base64url')],
  ['a list that is not numbers', Buffer.from('[1,"x",1,1,"",["1"]]').toString('base64url')],
  ['a very long text', 'x'.repeat(9_000)],
])('refuses a cursor that is %s', async (_what, since) => {
  const { ask } = await still();
  const { status, body } = await ask({ since });
  expect([status, body]).toMatchObject([400, { error: { code: 'invalid_request' } }]);
});

it.each(['-1', '31', 'x'])('refuses to wait for %s seconds', async (wait) => {
  const { ask } = await still();
  expect((await ask({ wait_s: wait })).status).toBe(400);
});

it('waits for a change, and answers at the end of the wait without one', async () => {
  const clock = new VirtualClock();
  const { ask, cursor, create } = await still({ clock });
  const ended = ask({ since: await cursor(), wait_s: '30' });
  const { body: unchanged } = await clock.advanceUntilSettled(ended, 1_000);
  expect(unchanged).toMatchObject({ reset: false, changes: [] });
  const since = unchanged.cursor;
  let isAnswered = false;
  const waiting = ask({ since, wait_s: '30' }).finally(() => {
    isAnswered = true;
  });
  await clock.advance(29_000);
  expect(isAnswered).toBe(false);
  const id = await create();
  const { body } = await waiting;
  expect(body.changes).toMatchObject([{ id }]);
});

it('lets 32 requests of an account wait, and does not keep another account from it', async () => {
  const clock = new VirtualClock();
  const { ask, cursor, create, addAccount } = await still({ clock });
  const other = await addAccount('other');
  const [since, others] = [await cursor(), await cursor(other)];
  const asked = Array.from({ length: 33 }, () => ask({ since, wait_s: '30' }));
  const refused = await Promise.race(asked);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '2']);
  const ofOther = ask({ since: others, wait_s: '30' }, other);
  const id = await create(other);
  expect((await ofOther).body.changes).toMatchObject([{ id }]);
  await create();
  expect((await Promise.all(asked)).map(({ status }) => status).sort()).toEqual([
    ...Array(32).fill(200),
    429,
  ]);
  expect((await clock.advanceUntilSettled(ask({ since: await cursor(), wait_s: '1' }), 100)).status).toBe(
    200,
  );
});

it('ends the wait of a client that has gone', async () => {
  const { log, lines } = collectLog();
  const { cursor, listener, key } = await still({ log });
  const since = await cursor();
  let isRead = false;
  await using server = await startServer({
    listener: (request, response) => {
      isRead = true;
      listener(request, response);
    },
  });
  const ended = () => lines.filter(({ fields }) => fields['path'] === '/v1/x/changes').length;
  const before = ended();
  const client = await WireClient.open(server.port);
  client.request('GET', `/v1/x/changes?since=${since}&wait_s=30`, { Authorization: `Bearer ${key}` });
  await until('it is read', () => isRead);
  client.socket.destroy();
  await until('its wait has ended', () => ended() === before + 1);
});

it('answers those that wait when the server begins to drain', async () => {
  const clock = new VirtualClock();
  const { ask, cursor, beginDrain } = await still({ clock });
  const since = await cursor();
  const waiting = [ask({ since, wait_s: '30' }), ask({ since, wait_s: '30' })];
  await clock.advance(1_000);
  beginDrain();
  for (const { status, body } of await Promise.all(waiting))
    expect([status, body.changes]).toEqual([200, []]);
  expect((await ask({ since, wait_s: '30' })).status).toBe(200);
});

it('answers 401 to a key that was revoked while it waited', async () => {
  const clock = new VirtualClock();
  const { ask, cursor, store } = await still({ clock });
  const since = await cursor();
  const waiting = ask({ since, wait_s: '30' });
  await clock.advance(5_000);
  const [{ id } = { id: '' }] = await store.read.credentials.listKeys();
  await store.transact((tx) => tx.credentials.revokeKey(id, clock.now()));
  expect((await clock.advanceUntilSettled(waiting, 1_000)).status).toBe(401);
});
