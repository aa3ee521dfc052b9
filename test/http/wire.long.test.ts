import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { instanceRequest } from '../../testing/requests.ts';
import { until } from '../../testing/until.ts';
import { startServer, WireClient, type WireReply } from '../support/http/wire.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { type Residue, residueOf } from '../support/processes/residue.ts';

const MB = 1024 * 1024;
const chunk = Buffer.alloc(64 * 1024, 'x');

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

let orchestrator: TestOrchestrator;
let server: Awaited<ReturnType<typeof startServer>>;
/** Gives a request 200 ms to arrive. */
let hasty: Awaited<ReturnType<typeof startServer>>;
let clean: Residue;
let auth: Record<string, string>;

beforeAll(async () => {
  orchestrator = await startTestOrchestrator();
  server = await startServer(orchestrator);
  hasty = await startServer(orchestrator, { requestTimeoutMs: 200 });
  auth = { Authorization: `Bearer ${orchestrator.key}` };
  clean = await residueOf(orchestrator);
});
afterAll(async () => {
  await hasty[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  await orchestrator[Symbol.asyncDispose]();
});
afterEach(async () => {
  await using client = await WireClient.open(server.port);
  client.request('GET', '/v1/configurations', auth);
  expect((await client.reply('GET', '/v1/configurations'))?.status, 'it still answers').toBe(200);
  expect(await residueOf(orchestrator)).toEqual(clean);
});

/** The reply is an error in the envelope, with a request id. */
function expectError(reply: WireReply | undefined, status: number, code: string): void {
  expect(reply?.status).toBe(status);
  expect(JSON.parse(reply?.body ?? '{}')).toMatchObject({ error: { code } });
  expect(reply?.headers.get('x-request-id')).toMatch(/^[\w.-]+$/);
}

/** By how much a measure of this process's memory grows at most while `work` runs. */
async function growthOf(measure: () => number, work: () => Promise<void>): Promise<number> {
  // Buffers of the tests before go only after a turn of the event loop.
  for (let turn = 0; turn < 3; turn++) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  const before = measure();
  let most = before;
  const sampling = setInterval(() => {
    most = Math.max(most, measure());
  }, 10);
  try {
    await work();
  } finally {
    clearInterval(sampling);
  }
  return Math.max(most, measure()) - before;
}

const residentBytes = (): number => process.memoryUsage().rss;
const heapInUseBytes = (): number => {
  collectGarbage();
  return process.memoryUsage().heapUsed;
};

/** Writes for as long as the other side reads; returns how much. */
async function writeUntilClosed(client: WireClient, bytes: Buffer): Promise<number> {
  let written = 0;
  while (client.socket.writable) {
    written += bytes.length;
    if (!client.socket.write(bytes))
      await Promise.race([once(client.socket, 'drain'), client.closed]).catch(() => undefined);
  }
  return written;
}

describe('a body that is too large', () => {
  it('is 413 to a client that sends 20 MB, whatever the client does first', async () => {
    for (let round = 0; round < 3; round++) {
      const request = httpRequest({
        port: server.port,
        method: 'POST',
        path: '/v1/instances',
        headers: { ...auth, 'Content-Type': 'application/json', 'Content-Length': 20 * MB },
      });
      // What is still to be written when the reply has come fails.
      request.on('error', () => undefined);
      const replied = once(request, 'response') as Promise<[IncomingMessage]>;
      for (let sent = 0; sent < 20 * MB; sent += chunk.length) request.write(chunk);
      request.end();
      const [response] = await replied;
      response.resume();
      expect(response.statusCode).toBe(413);
      expect(response.headers.connection).toBe('close');
      expect(response.headers['x-request-id']).toBeTruthy();
      await once(response, 'close');
    }
  });

  it('is 413 to fetch', async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}/v1/volumes`, {
      method: 'POST',
      headers: { ...auth, 'Content-Type': 'application/json' },
      body: Buffer.alloc(20 * MB, 'x'),
    });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({
      error: { code: 'payload_too_large', details: { max_bytes: MB } },
    });
  });

  it('is 413 to a client that listens only once it has said all', async () => {
    await using client = await WireClient.open(server.port);
    client.socket.pause();
    client.request('POST', '/v1/instances', {
      ...auth,
      'Content-Type': 'application/json',
      'Content-Length': String(20 * MB),
    });
    const said = new Promise((resolve) => client.socket.write(Buffer.alloc(20 * MB, 'x'), resolve));
    expect(await said, 'the connection is not reset').toBeFalsy();
    client.socket.resume();
    expectError(await client.reply('POST', '/v1/instances'), 413, 'payload_too_large');
  });

  it('is 413 if it never ends, the connection is closed, and memory stays flat, with eight at once [body-too-large]', async () => {
    const framed = Buffer.concat([
      Buffer.from(`${chunk.length.toString(16)}\r\n`),
      chunk,
      Buffer.from('\r\n'),
    ]);
    const flood = async (): Promise<void> => {
      await using client = await WireClient.open(server.port);
      client.request('POST', '/v1/instances', {
        ...auth,
        'Content-Type': 'application/json',
        'Transfer-Encoding': 'chunked',
      });
      const writing = writeUntilClosed(client, framed);
      expectError(await client.reply('POST', '/v1/instances'), 413, 'payload_too_large');
      await client.closed;
      await writing;
    };
    const growth = await growthOf(residentBytes, async () => {
      await Promise.all(Array.from({ length: 8 }, flood));
    });
    expect(growth).toBeLessThan(100 * MB);
  });

  it('costs no more if it comes in chunks of one byte', async () => {
    const growth = await growthOf(heapInUseBytes, async () => {
      await using client = await WireClient.open(server.port);
      client.request('POST', '/v1/instances', {
        ...auth,
        'Content-Type': 'application/json',
        'Transfer-Encoding': 'chunked',
      });
      const piece = '1\r\nx\r\n'.repeat(10_000);
      for (let count = 0; count < 20; count++) client.send(piece);
      client.send('0\r\n\r\n');
      expectError(await client.reply('POST', '/v1/instances'), 400, 'invalid_request');
    });
    expect(growth).toBeLessThan(16 * MB);
  });

  it('is no reason to refuse one of exactly the limit', async () => {
    const body = `{"x":"${'x'.repeat(MB - 8)}"}`;
    expect(body.length).toBe(MB);
    await using client = await WireClient.open(server.port);
    for (const [text, status, code] of [
      [body, 400, 'invalid_request'],
      [`${body} `, 413, 'payload_too_large'],
    ] as const) {
      client.request(
        'POST',
        '/v1/instances',
        { ...auth, 'Content-Type': 'application/json', 'Content-Length': String(text.length) },
        text,
      );
      expectError(await client.reply('POST', '/v1/instances'), status, code);
    }
    await client.closed;
  });

  it('does not go on for ever behind a refusal that needed none of it', async () => {
    const startedAt = performance.now();
    await using client = await WireClient.open(server.port);
    client.request('POST', '/v1/instances', {
      'Content-Type': 'application/json',
      'Transfer-Encoding': 'chunked',
    });
    const writing = writeUntilClosed(
      client,
      Buffer.concat([Buffer.from('10000\r\n'), chunk, Buffer.from('\r\n')]),
    );
    expectError(await client.reply('POST', '/v1/instances'), 401, 'unauthorized');
    await client.closed;
    await writing;
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  it('cannot hide in gzip', async () => {
    const bomb = gzipSync(Buffer.alloc(20 * MB, ' '));
    await using client = await WireClient.open(server.port);
    client.request('POST', '/v1/instances', {
      ...auth,
      'Content-Type': 'application/json',
      'Content-Encoding': 'gzip',
      'Content-Length': String(bomb.length),
    });
    client.send(bomb);
    expectError(await client.reply('POST', '/v1/instances'), 400, 'invalid_request');
  });
});

describe('a client that is slow', () => {
  const head = 'POST /v1/instances HTTP/1.1\r\nHost: berth.test\r\n';

  it.each([
    ['with its request line', 'POST /v1/inst'],
    ['with its headers', head],
  ])('%s gets 408', async (_name, bytes) => {
    await using client = await WireClient.open(hasty.port);
    client.send(bytes);
    expectError(await client.reply('POST', '/v1/instances'), 408, 'request_timeout');
    await client.closed;
  });

  it('with its body gets 408, and nothing is made of what came', async () => {
    const body = JSON.stringify(instanceRequest());
    await using client = await WireClient.open(hasty.port);
    client.request(
      'POST',
      '/v1/instances',
      { ...auth, 'Content-Type': 'application/json', 'Content-Length': String(body.length) },
      body.slice(0, -1),
    );
    expectError(await client.reply('POST', '/v1/instances'), 408, 'request_timeout');
    await client.closed;
  });

  it('with each byte of its body gets 408 [slow-body]', async () => {
    await using client = await WireClient.open(hasty.port);
    client.request('POST', '/v1/instances', {
      ...auth,
      'Content-Type': 'application/json',
      'Content-Length': '1000',
    });
    const dripping = setInterval(() => client.send(' '), 20);
    try {
      expectError(await client.reply('POST', '/v1/instances'), 408, 'request_timeout');
    } finally {
      clearInterval(dripping);
    }
  });
});

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
  it('are answered one after another', async () => {
    await using client = await WireClient.open(server.port);
    const statuses = [];
    for (const path of ['/v1/configurations', '/v1/instances/nope', '/v1/instances', '/v1/nothing']) {
      client.request('GET', path, auth);
      statuses.push((await client.reply('GET', path))?.status);
    }
    expect(statuses).toEqual([200, 404, 200, 404]);
  });

  it('get one answer, which says so, and a close if they are sent at once', async () => {
    await using client = await WireClient.open(server.port);
    for (let count = 0; count < 400; count++) client.request('GET', '/v1/configurations', auth);
    const reply = await client.reply('GET', '/v1/configurations');
    expect(reply?.status).toBe(200);
    expect(reply?.headers.get('connection')).toBe('close');
    expect(await client.reply()).toBeUndefined();
  });

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
    const startedAt = performance.now();
    const closing = ending.server.close(10_000);
    await client.closed;
    late.send('{}');
    expectError(await late.reply('POST', '/v1/volumes'), 400, 'invalid_request');
    await closing;
    expect(performance.now() - startedAt).toBeLessThan(8_000);
  });
});
