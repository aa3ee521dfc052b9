import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { authority, certificateOf } from './certificates.fixture.ts';
import {
  closeAll,
  closeLast,
  expectAnswer,
  get,
  hasty,
  limits,
  listen,
  newTransport,
  serve,
  serveRaw,
} from './http-servers.fixture.ts';
import { httpTransport } from './http-transport.ts';

afterEach(closeAll);

describe('connections', () => {
  /** Answers the first request of each connection. `second` handles later data of the connection. */
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
    const roundTripMs = await newTransport().roundTripMs(url, 20_000);
    expect(roundTripMs).toBeGreaterThan(0);
    expect(roundTripMs).toBeLessThan(20_000);
  });

  it('is unknown if no process listens', async () => {
    const url = await serveRaw(() => {});
    await closeLast();
    expect(await newTransport().roundTripMs(url, 1_000)).toBeUndefined();
    expect(await newTransport().roundTripMs('http://nowhere.invalid/', 1_000)).toBeUndefined();
  });
});

describe('TLS', () => {
  async function serveTls(certificate: { cert: string; key: string }, host = '127.0.0.1'): Promise<string> {
    const server = createHttpsServer(certificate, (_request, response) => response.end('secure'));
    server.on('tlsClientError', (_error, socket) => socket.destroy());
    return `https://${host}:${await listen(server)}`;
  }

  it('passes with a certificate that an authority of the run signed', async () => {
    const url = await serveTls(certificateOf('localhost'), 'localhost');
    const transport = newTransport({ ca: authority });
    const answer = expectAnswer(await get(url, limits, transport));
    expect(answer.body).toBe('secure');
    expect(await get(url, limits, transport)).toMatchObject({ body: 'secure' });
    expect(await transport.send({ method: 'POST', url, headers: {} }, limits)).toMatchObject({
      body: 'secure',
    });
  });

  it('has the public key of the certificate, on every connection', async () => {
    const certificate = certificateOf('localhost');
    // openssl pkey -in fixtures/tls/server.key -pubout -outform der | sha256sum
    const digest = '3191e447599c15e9fce814aabefc641c4e38e5c4b01568c4c932cdc8919f24ee';
    const url = await serveTls(certificate);
    const transport = newTransport({ ca: authority });
    // The second request reuses the connection; each POST has its own.
    for (const method of ['GET', 'GET', 'POST', 'POST'])
      expect(await transport.send({ method, url, headers: {} }, limits)).toMatchObject({ tlsKey: digest });
    const silent = createHttpsServer(certificate, (request) => request.socket.destroy());
    const lost = `https://127.0.0.1:${await listen(silent)}`;
    expect(await get(lost, limits, transport)).toMatchObject({ failure: 'reset', tlsKey: digest });
    const { url: plain } = await serve((_request, response) => response.end());
    expect(await get(plain, limits, transport)).not.toHaveProperty('tlsKey');
  });

  it('takes its time before the times of the answer begin', async () => {
    let now = 0;
    using _time = vi.spyOn(performance, 'now').mockImplementation(() => now);
    const tls = createHttpsServer(certificateOf('localhost'), (_request, response) => {
      now += 20;
      response.end('secure');
    });
    const front = createTcpServer((socket) => {
      now += 1_000;
      tls.emit('connection', socket);
    });
    const url = `https://127.0.0.1:${await listen(front)}`;
    expect(await get(url, limits, newTransport({ ca: authority }))).toMatchObject({ totalMs: 20 });
  });

  it.each<[string, Parameters<typeof certificateOf>[0], boolean, RegExp]>([
    ['expired', 'expired', true, /^the TLS certificate of 127\.0\.0\.1:\d+ has expired$/],
    ['self-signed', 'self-signed', true, /is self-signed/],
    ['for another host', 'other-host', true, /is not for 127\.0\.0\.1: .*other\.example/],
    ['from an unknown authority', 'localhost', false, /has an issuer that is unknown/],
  ])('fails with a certificate that is %s', async (_name, name, isTrusted, message) => {
    const url = await serveTls(certificateOf(name));
    const transport = newTransport(isTrusted ? { ca: authority } : {});
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
    const url = await serveTls(certificateOf('localhost'));
    expect(await get(url.replace('https:', 'http:'))).toHaveProperty('failure');
  });

  it.each<[string, (socket: Socket) => void, RegExp]>([
    ['closes', (socket) => socket.end(), /closed the connection during the TLS handshake/],
    ['is silent', () => {}, /no TLS handshake with .* within 500 ms/],
  ])('fails when the target %s', async (_name, talk, message) => {
    const url = await serveRaw((socket) => socket.once('data', () => talk(socket)));
    expect(await get(url.replace('http:', 'https:'), hasty)).toMatchObject({
      failure: 'tls',
      message: expect.stringMatching(message),
    });
  });

  it('that breaks once the request was read is no failure of the set-up', async () => {
    const outer: Socket[] = [];
    const tls = createTlsServer(certificateOf('localhost'), (socket) => {
      socket.on('error', () => {});
      socket.once('data', () => outer[0]?.write('HTTP/1.1 502 Bad Gateway\r\n\r\n'));
    });
    const port = await listen(tls);
    const front = await serveRaw((socket) => {
      outer.push(socket);
      const inner = connect(port, '127.0.0.1').on('error', () => {});
      socket.pipe(inner);
      inner.pipe(socket, { end: false });
      socket.once('close', () => inner.destroy());
    });
    const url = front.replace('http:', 'https:');
    const transport = newTransport({ ca: authority });
    expect(await transport.send({ method: 'POST', url, headers: {}, body: '{}' }, limits)).toMatchObject({
      failure: 'reset',
      message: expect.stringMatching(/^the TLS connection to .* broke after the request was sent/),
    });
  });

  it('cannot be set up with what is no certificate', () => {
    expect(() => httpTransport({ ca: 'no certificate' })).toThrow();
  });
});
