import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  closeAll,
  expectAnswer,
  get,
  limits,
  newTransport,
  serve,
  serveRaw,
} from './http-servers.fixture.ts';
import type { HttpRequest } from './transport.ts';

afterEach(closeAll);

describe('an answer', () => {
  it('has its status, headers, body and times', async () => {
    let now = 1000;
    let onRead = (): void => {};
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
      onRead();
      return now;
    });
    const { url } = await serve((_request, response) => {
      now += 5;
      response.setHeader('Set-Cookie', ['a=1', 'b=2']);
      response.setHeader('X-Request-Id', 'r1');
      response.statusCode = 418;
      response.write('tea');
      // The clock is next read when the first byte has arrived.
      onRead = () => {
        onRead = () => {};
        setImmediate(() => {
          now += 25;
          response.end('pot');
        });
      };
    });
    const answer = expectAnswer(await get(url).finally(() => clock.mockRestore()));
    expect(answer).toMatchObject({ status: 418, body: 'teapot' });
    expect(answer.headers).toMatchObject({ 'set-cookie': 'a=1, b=2', 'x-request-id': 'r1' });
    expect(answer).toMatchObject({ firstByteMs: 5, totalMs: 30 });
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

  it('204 with a body is that, and no fault of the network', async () => {
    const url = await serveRaw((socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\ngone')),
    );
    const outcome = await newTransport().send({ method: 'DELETE', url, headers: {} }, limits);
    expect(outcome).toMatchObject({ status: 204, body: 'gone' });
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
