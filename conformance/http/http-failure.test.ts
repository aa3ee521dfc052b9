import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  closeAll,
  closeLast,
  get,
  hasty,
  limits,
  newTransport,
  serve,
  serveRaw,
} from './http-servers.fixture.ts';

afterEach(closeAll);

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
        /^the answer of 127\.0\.0\.1:\d+ did not end within 500 ms; \d+ bytes of its body/,
      ),
    );
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
      message: `no answer from ${new URL(url).host} within 500 ms`,
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
    await closeLast();
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
