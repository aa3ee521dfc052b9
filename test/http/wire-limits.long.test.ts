import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startServer, WireClient } from '../support/http/wire.ts';
import type { TestOrchestrator } from '../support/orchestrator.ts';
import type { Residue } from '../support/processes/residue.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { expectError, expectUnharmed, startOnWire } from './wire.fixture.ts';

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
  ({ orchestrator, server, auth, clean } = await startOnWire());
  hasty = await startServer(orchestrator, { requestTimeoutMs: 200 });
});
afterAll(async () => {
  await hasty[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  await orchestrator[Symbol.asyncDispose]();
});
afterEach(() => expectUnharmed({ orchestrator, server, auth, clean }));

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
  });

  it('does not go on for ever behind a refusal that needed none of it', async () => {
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
