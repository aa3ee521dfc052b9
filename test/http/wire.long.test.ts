import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startServer, WireClient } from '../support/http/wire.ts';
import type { TestOrchestrator } from '../support/orchestrator.ts';
import { type Residue, residueOf } from '../support/processes/residue.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';
import { expectError, expectUnharmed, startOnWire } from './wire.fixture.ts';

let orchestrator: TestOrchestrator;
let server: Awaited<ReturnType<typeof startServer>>;
let clean: Residue;
let auth: Record<string, string>;

beforeAll(async () => {
  ({ orchestrator, server, auth, clean } = await startOnWire());
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await orchestrator[Symbol.asyncDispose]();
});
afterEach(() => expectUnharmed({ orchestrator, server, auth, clean }));

describe('what is no request', () => {
  it.each([
    ['noise', '\x00\x01\x02\x03\xff\xfe\r\n\r\n'],
    ['a TLS hello', Buffer.from('16030100c8010000c40303', 'hex')],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown method', 'BREW /v1/pot HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['no target', 'GET HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a space in the target', 'GET /v1/ x HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['HTTP/9.9', 'GET /v1/x HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['NUL in a header', 'GET /v1/x HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n'],
    ['a space before the colon', 'GET /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\n'],
    ['a folded header', 'GET /v1/x HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n'],
    ['a length below 0', 'POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n'],
    ['a length with a sign', 'POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello'],
    [
      'a length beyond numbers',
      `POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: ${'9'.repeat(30)}\r\n\r\n`,
    ],
    [
      'a chunk size that is none',
      'POST /v1/auth/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    ],
  ])('is 400 with the envelope: %s', async (_name, bytes) => {
    await using client = await WireClient.open(server.port);
    client.send(bytes);
    const reply = await client.reply();
    expectError(reply, 400, 'invalid_request');
    expect(reply?.headers.get('connection')).toBe('close');
    await client.closed;
  });

  it.each([
    ['no Host', 'GET /v1/configurations HTTP/1.1\r\n\r\n', 400],
    ['two Hosts', 'GET /v1/configurations HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n', 400],
    ['a Host that is none', 'GET /v1/configurations HTTP/1.1\r\nHost: a/../b?c\r\n\r\n', 400],
    ['a backslash in the path', 'GET /v1\\configurations HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['a target of *', 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['a target that is no path', 'GET v1/configurations HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['a path that climbs', 'GET /v1/instances/../configurations HTTP/1.1\r\nHost: x\r\n\r\n', 404],
    [
      'a path that climbs, escaped',
      'GET /v1/instances/%2e%2E/configurations HTTP/1.1\r\nHost: x\r\n\r\n',
      404,
    ],
    ['a path that climbs out', 'GET /v1/../healthz HTTP/1.1\r\nHost: x\r\n\r\n', 404],
    ['a path that ends in dots', 'DELETE /v1/volumes/.. HTTP/1.1\r\nHost: x\r\n\r\n', 404],
  ])('has the envelope though the app never sees it: %s', async (_name, bytes, status) => {
    await using client = await WireClient.open(server.port);
    client.send(bytes.replace('Host: x\r\n', `Host: x\r\nAuthorization: Bearer ${orchestrator.key}\r\n`));
    expectError(await client.reply(), status, status === 400 ? 'invalid_request' : 'not_found');
  });

  it('is 400 without Host, or with two, for the polled read too', async () => {
    const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
    const path = `/v1/instances/${body['id']}`;
    await using client = await WireClient.open(server.port);
    client.request('GET', path, auth);
    expect((await client.reply('GET', path))?.status).toBe(200);
    for (const hosts of ['', 'Host: x\r\nHost: y\r\n']) {
      client.send(`GET ${path} HTTP/1.1\r\n${hosts}Authorization: Bearer ${orchestrator.key}\r\n\r\n`);
      expectError(await client.reply('GET', path), 400, 'invalid_request');
    }
    await orchestrator.request('DELETE', `/instances/${body['id']}`);
    await orchestrator.waitFor(String(body['id']), 'GONE');
    clean = await residueOf(orchestrator);
  });

  it('is 431 with headers of 100 KB, or a target of 100 KB', async () => {
    for (const bytes of [
      `GET /v1/x HTTP/1.1\r\nHost: x\r\nX-Padding: ${'x'.repeat(100_000)}\r\n\r\n`,
      `GET /v1/instances/${'x'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    ]) {
      await using client = await WireClient.open(server.port);
      client.send(bytes);
      expectError(await client.reply(), 431, 'headers_too_large');
      await client.closed;
    }
  });

  it('is closed without a word for CONNECT', async () => {
    await using client = await WireClient.open(server.port);
    client.send('CONNECT example.test:443 HTTP/1.1\r\nHost: example.test\r\n\r\n');
    expect(await client.reply()).toBeUndefined();
  });

  it('is answered although its expectation is unknown', async () => {
    await using client = await WireClient.open(server.port);
    client.request('GET', '/v1/configurations', { ...auth, Expect: 'the-best' });
    expect((await client.reply('GET', '/v1/configurations'))?.status).toBe(200);
  });
});

describe('two requests that look like one [request-smuggling]', () => {
  const smuggled = () =>
    `DELETE /v1/instances/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${orchestrator.key}\r\n\r\n`;

  it.each([
    [
      'Content-Length and Transfer-Encoding',
      'Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['two lengths', 'Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello'],
    ['a length in two parts', 'Content-Length: 0, 5\r\n\r\nhello'],
    ['a coding after chunked', 'Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n'],
    ['a coding that is almost chunked', 'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n'],
    ['chunked with a vertical tab', 'Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n'],
  ])('are refused: %s', async (_name, rest) => {
    await using client = await WireClient.open(server.port);
    client.send(`POST /v1/auth/token HTTP/1.1\r\nHost: x\r\n${rest}${smuggled()}`);
    const replies = [];
    for (let reply = await client.reply(); reply !== undefined; reply = await client.reply())
      replies.push(reply);
    expect(replies.map(({ status }) => status)).toEqual([400]);
  });
});

describe('several requests on one connection', () => {
  it('are kept apart where one has no body: HEAD, 304 and 204', async () => {
    await using client = await WireClient.open(server.port);
    client.request('HEAD', '/v1/configurations', auth);
    const etag = (await client.reply('HEAD', '/v1/configurations'))?.headers.get('etag') ?? '';
    client.request('GET', '/v1/configurations', { ...auth, 'If-None-Match': etag });
    expect((await client.reply('GET', '/v1/configurations'))?.status).toBe(304);
    client.request('GET', '/v1/instances', auth);
    expect((await client.reply('GET', '/v1/instances'))?.status).toBe(200);
  });

  it('never mix up: noise behind a create is not answered in its place', async () => {
    const body = JSON.stringify(instanceRequest());
    await using client = await WireClient.open(server.port);
    client.request(
      'POST',
      '/v1/instances',
      { ...auth, 'Content-Type': 'application/json', 'Content-Length': String(body.length) },
      `${body}\0\0\0\r\n\r\n`,
    );
    const first = await client.reply('POST', '/v1/instances');
    expect([201, undefined]).toContain(first?.status);
    await until('the instance is listed', async () => {
      const { body: list } = await orchestrator.request<{ instances: { id: string }[] }>('GET', '/instances');
      return list.instances.length === 1;
    });
    const { body: list } = await orchestrator.request<{ instances: { id: string }[] }>('GET', '/instances');
    for (const { id } of list.instances) {
      await orchestrator.request('DELETE', `/instances/${id}`);
      await orchestrator.waitFor(id, 'GONE');
    }
    clean = await residueOf(orchestrator);
  });
});

describe('clients that go away', () => {
  it('in mid-body, 100 at once, leave nothing', async () => {
    const body = JSON.stringify(instanceRequest());
    const clients = await Promise.all(Array.from({ length: 100 }, () => WireClient.open(server.port)));
    for (const client of clients)
      client.request(
        'POST',
        '/v1/instances',
        { ...auth, 'Content-Type': 'application/json', 'Content-Length': String(body.length) },
        body.slice(0, 60),
      );
    await Promise.all(
      clients.map(async (client, index) => {
        if (index % 2 === 0) client.socket.resetAndDestroy();
        else client.socket.destroy();
        await client.closed;
      }),
    );
  });

  it('and those that only sit there do no harm: 500 idle connections', async () => {
    const idle = await Promise.all(Array.from({ length: 500 }, () => WireClient.open(server.port)));
    await using client = await WireClient.open(server.port);
    client.request('GET', '/v1/configurations', auth);
    expect((await client.reply('GET', '/v1/configurations'))?.status).toBe(200);
    await Promise.all(idle.map((connection) => connection[Symbol.asyncDispose]()));
  });

  it('do not hold up the end: a connection that was kept alive is closed', async () => {
    const ending = await startServer(orchestrator);
    await using client = await WireClient.open(ending.port);
    client.request('GET', '/v1/configurations', auth);
    await client.reply('GET', '/v1/configurations');
    await using late = await WireClient.open(ending.port);
    late.request('POST', '/v1/volumes', {
      ...auth,
      'Content-Type': 'application/json',
      'Content-Length': '2',
    });
    const closing = ending.server.close(10 * PATIENCE_MS);
    await client.closed;
    late.send('{}');
    expectError(await late.reply('POST', '/v1/volumes'), 400, 'invalid_request');
    await closing;
  });
});
