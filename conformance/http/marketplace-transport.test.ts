import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { closeAll, closeLast, expectAnswer, hasty, limits, serve, serveRaw } from './http-servers.fixture.ts';
import { marketplaceTransport } from './marketplace-transport.ts';
import type { HttpAnswer, HttpFailure, SendLimits, Transport } from './transport.ts';

const transports: Transport[] = [];

afterEach(async () => {
  await Promise.all(transports.splice(0).map((transport) => transport.close()));
  await closeAll();
});

function get(url: string, bounds: SendLimits = limits): Promise<HttpAnswer | HttpFailure> {
  const transport = marketplaceTransport();
  transports.push(transport);
  return transport.send({ method: 'GET', url, headers: {} }, bounds);
}

describe('an answer', () => {
  it('has its status, its headers and its decoded body', async () => {
    const { url } = await serve((_request, response) =>
      response.writeHead(201, { 'content-encoding': 'gzip', 'set-cookie': ['a', 'b'] }).end(gzipSync('grün')),
    );
    const { status, headers, body, firstByteMs, totalMs } = expectAnswer(await get(url));
    expect({ status, cookies: headers['set-cookie'], body }).toEqual({
      status: 201,
      cookies: 'a, b',
      body: 'grün',
    });
    expect(firstByteMs).toBeLessThanOrEqual(totalMs);
  });

  it('is too large beyond the limit, also where its encoding hides that', async () => {
    const long = 'x'.repeat(2_000);
    const plain = await serve((_request, response) => response.end(long));
    const packed = await serve((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(long)),
    );
    for (const { url } of [plain, packed])
      expect(await get(url, { ...limits, maxBodyBytes: 1_000 })).toMatchObject({ failure: 'too_large' });
  });
});

const failing: readonly (readonly [what: string, failure: string, address: () => Promise<string>])[] = [
  ['refused connection', 'connect', addressOfClosed],
  ['unknown name', 'dns', async () => 'http://nowhere.invalid'],
  [
    'plain server at an https address',
    'tls',
    async () => (await serve(() => {})).url.replace('http:', 'https:'),
  ],
  ['connection that is closed', 'reset', () => answering((socket) => socket.destroy())],
  [
    'answer that breaks off',
    'reset',
    () => answering((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc')),
  ],
  ['answer that is not HTTP', 'not_http', () => answering((socket) => socket.end('hello\r\n\r\n'))],
];

async function addressOfClosed(): Promise<string> {
  const { url } = await serve(() => {});
  await closeLast();
  return url;
}

/** A server that does this once it has received something. */
function answering(answer: (socket: Socket) => void): Promise<string> {
  return serveRaw((socket) => {
    socket.once('data', () => answer(socket));
  });
}

describe('a request without an answer', () => {
  it.each(failing)('is told by its cause: %s: %s', async (_what, failure, address) => {
    expect(await get(await address())).toMatchObject({ failure });
  });

  it('ends at its timeout, and when the run is interrupted', async () => {
    const url = await serveRaw(() => {});
    expect(await get(url, hasty)).toMatchObject({ failure: 'timeout' });
    expect(await get(url, { ...limits, signal: AbortSignal.abort() })).toMatchObject({
      failure: 'interrupted',
    });
    const ended = new AbortController();
    const asked = get(await serveRaw(() => ended.abort()), { ...limits, signal: ended.signal });
    expect(await asked).toMatchObject({ failure: 'interrupted' });
  });
});

it('refuses a file of authorities without a certificate', () => {
  expect(() => marketplaceTransport({ ca: 'none' })).toThrow();
});
