import { createServer as createHttpServer, type Server as HttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { hasOpenSsl, makeCertificate } from './certificates.fixture.ts';
import { type HttpTransportOptions, httpTransport } from './http-transport.ts';
import type { HttpAnswer, HttpFailure, HttpRequest, SendLimits, Transport } from './transport.ts';

const limits: SendLimits = { timeoutMs: 5_000, maxBodyBytes: 100_000 };
const hasty: SendLimits = { timeoutMs: 100, maxBodyBytes: 100_000 };

const servers: Server[] = [];
const transports: Transport[] = [];
afterEach(async () => {
  await Promise.all(transports.splice(0).map((transport) => transport.close()));
  // Ends only when each connection has ended: one that a closed transport leaks times the test out.
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  return (server.address() as AddressInfo).port;
}

async function serve(answer: RequestListener): Promise<{ url: string; server: HttpServer }> {
  const server = createHttpServer(answer);
  return { url: `http://127.0.0.1:${await listen(server)}`, server };
}

/** A server of bytes; errors of its sockets are no matter. */
async function serveRaw(talk: (socket: Socket) => void): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    talk(socket);
    // It is read, so that the end of the connection is seen.
    socket.resume();
  });
  return `http://127.0.0.1:${await listen(server)}`;
}

function newTransport(options?: HttpTransportOptions): Transport {
  const transport = httpTransport(options);
  transports.push(transport);
  return transport;
}

function get(url: string, bounds = limits, transport = newTransport()): Promise<HttpAnswer | HttpFailure> {
  return transport.send({ method: 'GET', url, headers: {} }, bounds);
}

function expectAnswer(outcome: HttpAnswer | HttpFailure): HttpAnswer {
  if ('failure' in outcome) throw new Error(`${outcome.failure}: ${outcome.message}`);
  return outcome;
}

describe('an answer', () => {
  it('has its status, headers, body and times', async () => {
    const { url } = await serve((_request, response) => {
      response.setHeader('Set-Cookie', ['a=1', 'b=2']);
      response.setHeader('X-Request-Id', 'r1');
      response.statusCode = 418;
      response.write('tea');
      setTimeout(() => response.end('pot'), 20);
    });
    const answer = expectAnswer(await get(url));
    expect(answer).toMatchObject({ status: 418, body: 'teapot' });
    expect(answer.headers).toMatchObject({ 'set-cookie': 'a=1, b=2', 'x-request-id': 'r1' });
    expect(answer.firstByteMs).toBeGreaterThan(0);
    expect(answer.totalMs - answer.firstByteMs).toBeGreaterThan(10);
  });

  it('of several headers that HTTP allows once has them all', async () => {
    const url = await serveRaw((socket) =>
      socket.once('data', () =>
        socket.end('HTTP/1.1 200 OK\r\nContent-Type: a/a\r\ncontent-type: b/b\r\n__proto__: x\r\n\r\n'),
      ),
    );
    const { headers } = expectAnswer(await get(url));
    expect(headers['content-type']).toBe('a/a, b/b');
    expect(Object.keys(headers)).toContain('__proto__');
  });

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ])('to %s with %i has no body', async (method, status) => {
    const { url } = await serve((_request, response) => response.writeHead(status).end());
    const outcome = await newTransport().send({ method, url, headers: {} }, limits);
    expect(outcome).toMatchObject({ status, body: '' });
  });

  it('that redirects is given as it is, and not followed', async () => {
    let requests = 0;
    const { url } = await serve((_request, response) => {
      requests++;
      response.writeHead(302, { location: '/again' }).end();
    });
    expect(await get(url)).toMatchObject({ status: 302, headers: { location: '/again' } });
    expect(requests).toBe(1);
  });

  it('that is no UTF-8 has a replacement for what is not', async () => {
    const { url } = await serve((_request, response) => response.end(Buffer.from([0x61, 0xff, 0x62])));
    expect(await get(url)).toMatchObject({ body: 'a\ufffdb' });
  });

  const encoders = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };
  describe.each(Object.entries(encoders))('in %s, though nobody asked for it,', (encoding, encode) => {
    const encoded = async (body: Buffer): Promise<string> => {
      const { url } = await serve((request, response) => {
        expect(request.headers['accept-encoding']).toBeUndefined();
        response.writeHead(200, { 'content-encoding': encoding }).end(body);
      });
      return url;
    };

    it('is decoded', async () => {
      expect(await get(await encoded(encode('{"ok":true}')))).toMatchObject({ body: '{"ok":true}' });
    });

    it('is too large when what is in it is', async () => {
      const bomb = encode(Buffer.alloc(20_000_000));
      expect(bomb.length).toBeLessThan(limits.maxBodyBytes);
      expect(await get(await encoded(bomb))).toMatchObject({ failure: 'too_large' });
    });

    it('is given as it came when it cannot be decoded', async () => {
      expect(await get(await encoded(Buffer.from('plain')))).toMatchObject({ status: 200, body: 'plain' });
    });
  });
});

describe('a request', () => {
  interface Seen {
    method: string | undefined;
    path: string | undefined;
    headers: string[];
    body: string;
  }

  async function send(request: Omit<HttpRequest, 'url'>, path = '/v1/x'): Promise<Seen> {
    let seen: Seen | undefined;
    const { url } = await serve(async (incoming, response) => {
      const body = Buffer.concat(await incoming.toArray()).toString();
      seen = { method: incoming.method, path: incoming.url, headers: incoming.rawHeaders, body };
      response.end();
    });
    expectAnswer(await newTransport().send({ ...request, url: `${url}${path}` }, limits));
    if (seen === undefined) throw new Error('the server saw no request');
    return seen;
  }

  it('goes out with its headers and what HTTP needs, and nothing else', async () => {
    const headers = { 'content-type': 'text/odd', authorization: 'Bearer x', 'user-agent': 'suite' };
    const seen = await send({ method: 'POST', headers, body: 'für' });
    expect(seen).toMatchObject({ method: 'POST', path: '/v1/x', body: 'für' });
    const names = seen.headers.filter((_value, index) => index % 2 === 0).map((name) => name.toLowerCase());
    expect(names.toSorted()).toEqual(
      ['authorization', 'connection', 'content-length', 'content-type', 'host', 'user-agent'].toSorted(),
    );
    expect(seen.headers).toContain('4');
  });

  it.each(['DELETE', 'GET', 'PUT'])('carries the body of %s with its length', async (method) => {
    const seen = await send({ method, headers: {}, body: '{}' });
    expect(seen.body).toBe('{}');
    expect(seen.headers).toContain('content-length');
  });

  it.each(['/a/../b?x=%2e%2E', "/it's?q[]={a}|b", '/'])(
    'keeps the path %s as it was written',
    async (path) => {
      expect((await send({ method: 'GET', headers: {} }, path)).path).toBe(path);
    },
  );

  it('encodes what a path cannot hold, and leaves a fragment out', async () => {
    expect((await send({ method: 'GET', headers: {} }, '/für alle#part')).path).toBe('/f%C3%BCr%20alle');
  });

  it('that HTTP cannot carry fails, and does not throw', async () => {
    const request = { method: 'GET', url: 'http://127.0.0.1:1/', headers: { 'x-odd': 'a\r\nb: c' } };
    const outcome = await newTransport().send(request, limits);
    expect(outcome).toMatchObject({
      failure: 'not_http',
      message: expect.stringMatching(/^this request cannot be written as HTTP: Invalid character/),
    });
  });
});

it('gives an answer that comes before the request is read, and leaves the rest of the request', async () => {
  const url = await serveRaw((socket) => {
    socket.once('data', () => {
      socket.pause().write('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}');
      setTimeout(() => socket.resume(), 50);
    });
  });
  const request = { method: 'POST', url, headers: {}, body: 'x'.repeat(20_000_000) };
  expect(await newTransport().send(request, limits)).toMatchObject({ status: 413, body: '{}' });
});

describe('a hostile or broken target', () => {
  it('that sends a body without end is cut off at the bound', async () => {
    let written = 0;
    const { url } = await serve((_request, response) => {
      const chunk = Buffer.alloc(65_536, 'x');
      const pour = (): void => {
        while (!response.destroyed && written < 10e9) {
          written += chunk.length;
          if (!response.write(chunk)) return void response.once('drain', pour);
        }
      };
      response.on('error', () => {});
      pour();
    });
    expect(await get(url)).toMatchObject({
      failure: 'too_large',
      message: 'the body of the answer is larger than 100000 bytes and was cut off there',
    });
    expect(written).toBeLessThan(50_000_000);
  });

  it('that sends one byte at a time runs into the timeout for the whole', async () => {
    const url = await serveRaw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n');
      const timer = setInterval(() => socket.write('x'), 10);
      socket.once('close', () => clearInterval(timer));
    });
    const outcome = await get(url, hasty);
    expect(outcome).toMatchObject({ failure: 'timeout' });
    expect(outcome).toHaveProperty(
      'message',
      expect.stringMatching(
        /^the answer of 127\.0\.0\.1:\d+ did not end within 100 ms; \d+ bytes of its body/,
      ),
    );
    expect(outcome.totalMs).toBeLessThan(1_000);
  });

  it('that sends its headers one byte at a time does so too', async () => {
    const url = await serveRaw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nX-Slow: ');
      const timer = setInterval(() => socket.write('x'), 10);
      socket.once('close', () => clearInterval(timer));
    });
    expect(await get(url, hasty)).toMatchObject({ failure: 'timeout' });
  });

  it('that accepts and never answers runs into the timeout', async () => {
    const url = await serveRaw(() => {});
    expect(await get(url, hasty)).toMatchObject({
      failure: 'timeout',
      message: `no answer from ${new URL(url).host} within 100 ms`,
    });
  });

  const raw: [name: string, talk: (socket: Socket) => void, failure: string, message: RegExp][] = [
    [
      'closes without an answer',
      (socket) => socket.end(),
      'reset',
      /closed the connection without an answer/,
    ],
    ['resets', (socket) => socket.resetAndDestroy(), 'reset', /reset the connection without an answer/],
    [
      'closes in the middle of the headers',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nX: '),
      'reset',
      /closed the connection in the middle of its answer, after 0 bytes/,
    ],
    [
      'closes in the middle of the body',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'),
      'reset',
      /in the middle of its answer, after 3 bytes of the body/,
    ],
    [
      'talks something else',
      (socket) => socket.end('220 mail.example.com \x1b[31mESMTP\r\n'),
      'not_http',
      /is not HTTP: .*; it sent "220 mail\.example\.com \\x1b\[31mESMTP\\r\\n"/,
    ],
    [
      'sends two lengths',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'),
      'not_http',
      /is not HTTP/,
    ],
    [
      'switches to another protocol',
      (socket) => socket.end('HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'),
      'not_http',
      /switched to another protocol/,
    ],
    [
      'sends huge headers',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`),
      'too_large',
      /headers of the answer are larger than 32768 bytes/,
    ],
    [
      'speaks TLS where HTTP is meant',
      (socket) => socket.end(Buffer.from([0x15, 0x03, 0x01, 0, 2, 2, 0x46])),
      'not_http',
      /speaks TLS: its address begins with https/,
    ],
  ];
  it.each(raw)('that %s', async (_name, talk, failure, message) => {
    const url = await serveRaw((socket) => socket.once('data', () => void talk(socket)));
    expect(await get(url)).toMatchObject({ failure, message: expect.stringMatching(message) });
  });

  it('whose name does not exist', async () => {
    expect(await get('http://nowhere.invalid/')).toMatchObject({
      failure: 'dns',
      message: expect.stringMatching(/^the name nowhere\.invalid does not resolve \(E/),
    });
  });

  it('whose port is closed', async () => {
    const url = await serveRaw(() => {});
    await new Promise((resolve) => servers.pop()?.close(resolve));
    expect(await get(url)).toMatchObject({
      failure: 'connect',
      message: `connection refused by ${new URL(url).host}`,
    });
  });
});

describe('an abort', () => {
  it('ends what is under way', async () => {
    const abort = new AbortController();
    const url = await serveRaw((socket) => socket.once('data', () => abort.abort()));
    expect(await get(url, { ...limits, signal: abort.signal })).toMatchObject({ failure: 'interrupted' });
  });

  it('before the request sends nothing', async () => {
    const url = await serveRaw(() => expect.unreachable());
    expect(await get(url, { ...limits, signal: AbortSignal.abort() })).toMatchObject({
      failure: 'interrupted',
    });
  });

  it('is what the closing of the transport is', async () => {
    const url = await serveRaw((socket) => socket.once('data', () => void transport.close()));
    const transport = newTransport();
    expect(await get(url, limits, transport)).toMatchObject({ failure: 'interrupted' });
    expect(await get(url, limits, transport)).toMatchObject({ failure: 'interrupted' });
    expect(await transport.roundTripMs(url, 1_000)).toBeUndefined();
  });
});

describe('connections', () => {
  /** Answers the first request of each connection; what comes after it on the connection meets `second`. */
  async function serveOnce(
    second: (socket: Socket) => void,
    after = '',
  ): Promise<{ url: string; requests: string[]; connections: () => number }> {
    const requests: string[] = [];
    let connections = 0;
    const url = await serveRaw((socket) => {
      let isFirst = true;
      connections++;
      socket.on('data', (chunk) => {
        requests.push(chunk.toString().split(' ')[0] ?? '');
        if (isFirst) socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}${after}`);
        else second(socket);
        isFirst = false;
      });
    });
    return { url, requests, connections: () => connections };
  }

  it('are used again by GET', async () => {
    const { url, connections } = await serveOnce((socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain'),
    );
    const transport = newTransport();
    await get(url, limits, transport);
    expect(await get(url, limits, transport)).toMatchObject({ body: 'again' });
    expect(connections()).toBe(1);
  });

  it.each<[string, (socket: Socket) => void]>([
    ['closes', (socket) => socket.end()],
    ['resets', (socket) => socket.resetAndDestroy()],
    ['garbles', (socket) => socket.write('left over')],
  ])(
    'that the target %s when they are used again are no fault: GET is sent once more',
    async (_name, second) => {
      const { url, requests, connections } = await serveOnce(second);
      const transport = newTransport();
      expectAnswer(await get(url, limits, transport));
      expect(await get(url, limits, transport)).toMatchObject({ status: 200, body: '{}' });
      expect(requests).toEqual(['GET', 'GET', 'GET']);
      expect(connections()).toBe(2);
    },
  );

  it('that fail when they are new are a fault, and GET is sent once', async () => {
    let connections = 0;
    const url = await serveRaw((socket) => {
      connections++;
      socket.once('data', () => socket.end());
    });
    expect(await get(url)).toMatchObject({ failure: 'reset' });
    expect(connections).toBe(1);
  });

  it('that are silent when they are used again run into the timeout, once', async () => {
    const { url, requests } = await serveOnce(() => {});
    const transport = newTransport();
    expectAnswer(await get(url, limits, transport));
    expect(await get(url, hasty, transport)).toMatchObject({ failure: 'timeout' });
    expect(requests).toEqual(['GET', 'GET']);
  });

  it.each(['POST', 'DELETE', 'PUT', 'PATCH'])(
    'are new for each %s, which is never repeated',
    async (method) => {
      let connections = 0;
      const { url, server } = await serve((request, response) => {
        if (request.method !== 'GET') return void request.socket.destroy();
        response.end();
      });
      server.on('connection', () => connections++);
      const transport = newTransport();
      expectAnswer(await get(url, limits, transport));
      expect(await transport.send({ method, url, headers: {} }, limits)).toMatchObject({ failure: 'reset' });
      expect(connections).toBe(2);
    },
  );

  it('serve many at a time', async () => {
    const { url } = await serve((request, response) => response.end(request.url));
    const transport = newTransport();
    const paths = Array.from({ length: 40 }, (_, index) => `/${index}`);
    const outcomes = await Promise.all(paths.map((path) => get(`${url}${path}`, limits, transport)));
    expect(outcomes.map((outcome) => expectAnswer(outcome).body)).toEqual(paths);
  });
});

describe('the round trip', () => {
  it('is what a TCP connection takes', async () => {
    const url = await serveRaw((socket) => socket.resume());
    const roundTripMs = await newTransport().roundTripMs(url, 1_000);
    expect(roundTripMs).toBeGreaterThan(0);
    expect(roundTripMs).toBeLessThan(500);
  });

  it('is unknown where nobody listens', async () => {
    const url = await serveRaw(() => {});
    await new Promise((resolve) => servers.pop()?.close(resolve));
    expect(await newTransport().roundTripMs(url, 1_000)).toBeUndefined();
    expect(await newTransport().roundTripMs('http://nowhere.invalid/', 1_000)).toBeUndefined();
  });
});

describe.skipIf(!hasOpenSsl)('TLS', () => {
  async function serveTls(certificate: { cert: string; key: string }, host = '127.0.0.1'): Promise<string> {
    const server = createHttpsServer(certificate, (_request, response) => response.end('secure'));
    server.on('tlsClientError', (_error, socket) => socket.destroy());
    return `https://${host}:${await listen(server)}`;
  }

  it('passes with a certificate that an authority of the run signed', async () => {
    const ca = makeCertificate({ isAuthority: true });
    const url = await serveTls(makeCertificate({ issuer: ca }), 'localhost');
    const transport = newTransport({ ca: ca.cert });
    const answer = expectAnswer(await get(url, limits, transport));
    expect(answer.body).toBe('secure');
    expect(await get(url, limits, transport)).toMatchObject({ body: 'secure' });
    expect(await transport.send({ method: 'POST', url, headers: {} }, limits)).toMatchObject({
      body: 'secure',
    });
  });

  it('takes its time before the times of the answer begin', async () => {
    const certificate = makeCertificate();
    const tls = createHttpsServer(certificate, (_request, response) => response.end('secure'));
    const front = createTcpServer((socket) => {
      setTimeout(() => tls.emit('connection', socket), 80);
    });
    const url = `https://127.0.0.1:${await listen(front)}`;
    const startedAt = performance.now();
    const answer = expectAnswer(await get(url, limits, newTransport({ ca: certificate.cert })));
    expect(performance.now() - startedAt).toBeGreaterThan(75);
    expect(answer.totalMs).toBeLessThan(70);
  });

  it.each<[string, () => Parameters<typeof makeCertificate>[0], boolean, RegExp]>([
    ['expired', () => ({ days: -1 }), true, /^the TLS certificate of 127\.0\.0\.1:\d+ has expired$/],
    ['self-signed', () => ({}), false, /is self-signed/],
    [
      'for another host',
      () => ({ names: 'DNS:example.com' }),
      true,
      /is not for 127\.0\.0\.1: .*example\.com/,
    ],
    [
      'from an unknown authority',
      () => ({ issuer: makeCertificate({ isAuthority: true }) }),
      false,
      /has an issuer that is unknown/,
    ],
  ])('fails with a certificate that is %s', async (_name, options, isTrusted, message) => {
    const certificate = makeCertificate(options());
    const url = await serveTls(certificate);
    const transport = newTransport(isTrusted ? { ca: certificate.cert } : {});
    expect(await get(url, limits, transport)).toMatchObject({
      failure: 'tls',
      message: expect.stringMatching(message),
    });
  });

  it('fails with plain HTTP on the port', async () => {
    const { url } = await serve((_request, response) => response.end());
    expect(await get(url.replace('http:', 'https:'))).toMatchObject({
      failure: 'tls',
      message: expect.stringContaining('does not speak TLS'),
    });
  });

  it('fails when it is spoken where HTTP is meant', async () => {
    const url = await serveTls(makeCertificate());
    expect(await get(url.replace('https:', 'http:'))).toHaveProperty('failure');
  });

  it.each<[string, (socket: Socket) => void, RegExp]>([
    ['closes', (socket) => socket.end(), /closed the connection during the TLS handshake/],
    ['is silent', () => {}, /no TLS handshake with .* within 100 ms/],
  ])('fails when the target %s', async (_name, talk, message) => {
    const url = await serveRaw((socket) => socket.once('data', () => talk(socket)));
    expect(await get(url.replace('http:', 'https:'), hasty)).toMatchObject({
      failure: 'tls',
      message: expect.stringMatching(message),
    });
  });

  it('cannot be set up with what is no certificate', () => {
    expect(() => httpTransport({ ca: 'no certificate' })).toThrow();
  });
});
