import { once } from 'node:events';
import { connect } from 'node:net';
import { Client } from 'undici';
import { expect, it, vi } from 'vitest';
import { serveSandbox } from '../../compose/sandbox/serve.ts';
import { otherSideClosed } from './proofs.fixture.ts';

/** A served sandbox. `open` makes a client that has one connection at a time, and keeps it alive. */
async function serve() {
  const { origin, sandbox, stop } = await serveSandbox({}, { host: '127.0.0.1', port: 0 });
  const { apiKey, baseUrl } = sandbox.provider('a');
  const { pathname } = new URL(baseUrl);
  const headers = { authorization: `Bearer ${apiKey}` };
  const clients: Client[] = [];
  return {
    ...{ origin, sandbox, baseUrl, headers, path: `${pathname}/instances` },
    open() {
      const client = new Client(origin);
      clients.push(client);
      let connections = 0;
      client.on('connect', () => {
        connections++;
      });
      return {
        connections: () => connections,
        async ask(signal?: AbortSignal): Promise<string> {
          const reply = await client.request({
            ...{ path: `${pathname}/instances`, method: 'GET', headers },
            ...(signal !== undefined && { signal }),
          });
          return `${reply.statusCode} ${await reply.body.text()}`;
        },
      };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map((client) => client.destroy()));
      await stop();
    },
  };
}

const EMPTY = '200 {"instances":[]}';

it('slows one connection, for all of its requests, and no other', async () => {
  await using serving = await serve();
  const { sandbox, open } = serving;
  const [slow, quick] = [open(), open()];
  const armed = await sandbox.faults.arm('slow-connection', {
    latency_ms: 300,
    bytes_per_s: 100,
    times: 1,
    must_trigger: true,
  });
  for (let round = 1; round <= 2; round++) {
    const before = sandbox.clock.now();
    expect(await slow.ask()).toBe(EMPTY);
    // 16 bytes, 10 in each piece.
    expect(sandbox.clock.now() - before).toBe(300 + 2 * 100);
    expect(await quick.ask()).toBe(EMPTY);
    expect(sandbox.clock.now() - before).toBe(300 + 2 * 100);
  }
  expect([slow.connections(), quick.connections()]).toEqual([1, 1]);
  expect(armed).toMatchObject({ seen: 1, hits: 1, isUntriggered: false });
  expect(sandbox.faults.events).toHaveLength(2);
  armed.disarm();
  const before = sandbox.clock.now();
  expect(await slow.ask()).toBe(EMPTY);
  expect(sandbox.clock.now()).toBe(before);
});

it('closes its half before an answer', async () => {
  await using serving = await serve();
  const { sandbox, baseUrl, headers, open } = serving;
  await sandbox.faults.arm('half-closed-before-answer', { times: 2 });
  const url = `${baseUrl}/instances`;
  await expect(fetch(url, { headers: { ...headers, connection: 'close' } })).rejects.toMatchObject(
    otherSideClosed,
  );
  const client = open();
  await expect(client.ask()).rejects.toMatchObject(otherSideClosed.cause);
  expect(await client.ask()).toBe(EMPTY);
  expect(client.connections()).toBe(2);
});

it('closes its half after an answer, reads what still comes, and does not carry it out', async () => {
  await using serving = await serve();
  const { sandbox, origin, headers, path } = serving;
  await sandbox.faults.arm('half-closed-after-answer');
  const { hostname, port } = new URL(origin);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  let text = '';
  socket.on('data', (chunk) => {
    text += String(chunk);
  });
  const send = (method: string, target: string) =>
    socket.write(
      `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${headers.authorization}\r\n\r\n`,
    );
  send('GET', path);
  await once(socket, 'end');
  expect(text).toMatch(/^HTTP\/1.1 200 [\s\S]*\{"instances":\[\]\}$/);
  expect(text).not.toMatch(/connection: close/i);
  const answered = text;
  const { length: before } = sandbox.faults.events;
  send('DELETE', `${path}/x`);
  await vi.waitUntil(() => sandbox.faults.events.length > before);
  socket.end();
  await once(socket, 'close');
  expect(text).toBe(answered);
  expect(socket.errored).toBeNull();
  expect(await sandbox.control.journal.entries()).toMatchObject([
    { method: 'GET', status: 200 },
    { method: 'DELETE', status: null },
  ]);
});

it('is silent on a kept-alive connection; others are answered', async () => {
  await using serving = await serve();
  const { sandbox, open } = serving;
  await sandbox.faults.arm('dead-connection');
  const [client, other] = [open(), open()];
  expect(await client.ask()).toBe(EMPTY);
  const { length: before } = sandbox.faults.events;
  const giveUp = new AbortController();
  const waiting = client.ask(giveUp.signal);
  await vi.waitUntil(() => sandbox.faults.events.length > before);
  expect(await other.ask()).toBe(EMPTY);
  giveUp.abort(new Error('gave up'));
  await expect(waiting).rejects.toThrow('gave up');
  expect(await client.ask()).toBe(EMPTY);
  expect([client.connections(), other.connections()]).toEqual([2, 1]);
});
