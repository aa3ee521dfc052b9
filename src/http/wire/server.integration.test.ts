import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { silentLog } from '../../../test/support/doubles/log.ts';
import { PATIENCE_MS, until } from '../../../test/support/time/until.ts';
import { createCertificates } from '../../compose/sandbox/certificates.ts';
import { HttpServer, type ServerOptions } from './server.ts';

const MB = 1024 * 1024;
const nothing = () => undefined;
const log = silentLog;
/** Longer than a test may take. */
const NEVER_MS = 10 * PATIENCE_MS;
const { valid: tls } = createCertificates(['127.0.0.1'], Date.now());
const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

interface Setting extends Partial<Pick<ServerOptions, 'requestTimeoutMs' | 'stallMs' | 'tls' | 'accept'>> {}

async function start(
  listener: RequestListener,
  setting: Setting = {},
): Promise<{ port: number; server: HttpServer }> {
  const options: ServerOptions = {
    host: '127.0.0.1',
    port: 0,
    requestTimeoutMs: PATIENCE_MS,
    log,
    nextId: () => 'id',
    ...setting,
    refuse: (problem) => ({ status: problem === 'timed_out' ? 408 : 400, code: problem, body: { problem } }),
  };
  const server = new HttpServer(listener, options);
  const port = await server.listen(options);
  undo.push(() => server.close(0));
  return { port, server };
}

interface Client {
  socket: Socket;
  /** All received text. */
  text(): string;
  /** Whether the received text ends with `end`. Unlike `text()`, it does not join the whole text. */
  endsWith(end: string): boolean;
  closed: Promise<void>;
}

async function open(port: number, isTls = false): Promise<Client> {
  const address = { port, host: '127.0.0.1' };
  const socket = isTls ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address);
  let text = '';
  let last = '';
  socket.setNoDelay(true);
  socket.on('data', (bytes) => {
    const received = bytes.toString('latin1');
    text += received;
    last = (last + received).slice(-100);
  });
  socket.on('error', nothing);
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  await once(socket, isTls ? 'secureConnect' : 'connect');
  undo.push(() => socket.destroy());
  return { socket, text: () => text, endsWith: (end) => last.endsWith(end), closed };
}

const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
const post = (path: string, body: string, more = ''): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const bytes of request) body += bytes;
  return body;
}

/**
 * Answers each request after a turn of the event loop with its method and path. `tooEarly` lists requests that began
 * before their turn.
 */
function echo(): { listener: RequestListener; tooEarly: string[] } {
  const tooEarly: string[] = [];
  const last = new WeakMap<Socket, ServerResponse>();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (last.get(request.socket)?.writableFinished === false) tooEarly.push(String(request.url));
    last.set(request.socket, response);
    const body = await bodyOf(request);
    await new Promise(setImmediate);
    response.end(`<${request.method} ${request.url} ${body}>`);
  };
  return { listener: (request, response) => void answer(request, response), tooEarly };
}

const repliesIn = (text: string): string[] => text.match(/<[^>]*>/g) ?? [];

const kinds: [string, () => Setting, boolean][] = [
  ['plain', () => ({}), false],
  ['TLS', () => ({ tls }), true],
];

const chunked = 'Transfer-Encoding: chunked\r\n';
/** A description of each request, its bytes, and the reply. */
const anyRequests: [string, string, string][] = [
  ['GET', get('/a'), '<GET /a >'],
  ['POST with an empty line in its body', post('/b', '{"x":"\r\n\r\n"}'), '<POST /b {"x":"\r\n\r\n"}>'],
  ['keep-alive', get('/c', 'Connection: keep-alive\r\n'), '<GET /c >'],
  ['chunked', `POST /d HTTP/1.1\r\nHost: x\r\n${chunked}\r\n4\r\nbody\r\n0\r\n\r\n`, '<POST /d body>'],
  ['100-continue', post('/e', 'z', 'Expect: 100-continue\r\n'), '<POST /e z>'],
  ['a body of several packets', post('/f', 'x'.repeat(300_000)), `<POST /f ${'x'.repeat(300_000)}>`],
];
const upgrade = [get('/g', 'Upgrade: websocket\r\nConnection: Upgrade\r\n'), '<GET /g >'] as const;

describe.each(kinds)('requests on one connection, %s', (_name, setting, isTls) => {
  it('are answered one after another, whatever they are', async () => {
    const { listener } = echo();
    const { port } = await start(listener, setting());
    const client = await open(port, isTls);
    const sent = [...anyRequests.map(([, ...exchange]) => exchange), upgrade];
    for (const [index, [request]] of sent.entries()) {
      client.socket.write(request);
      await until('its reply', () => repliesIn(client.text()).length === index + 1);
    }
    expect(repliesIn(client.text())).toEqual(sent.map(([, reply]) => reply));
    expect(client.text()).not.toContain('Connection: close');
  });

  it.each(anyRequests)(
    'get one answer and a close if they are pipelined: %s',
    async (_what, request, reply) => {
      const { listener, tooEarly } = echo();
      const { port } = await start(listener, setting());
      const client = await open(port, isTls);
      client.socket.write(request.repeat(request.length > 1_000 ? 20 : 400));
      await client.closed;
      expect(tooEarly).toEqual([]);
      // A client that still sends when the connection is closed may lose even that answer.
      if (request.length > 1_000) return;
      expect(repliesIn(client.text())).toEqual([reply]);
      expect(client.text().match(/Connection: close/g)).toHaveLength(1);
    },
  );

  it('get one answer and a close if they are pipelined and a handler answers at once', async () => {
    const begun: (string | undefined)[] = [];
    const { port } = await start((request, response) => {
      begun.push(request.url);
      response.writeHead(200, ['Content-Length', '4']).end('<ok>');
    }, setting());
    const client = await open(port, isTls);
    client.socket.write(Array.from({ length: 400 }, (_, index) => get(`/${index}`)).join(''));
    await client.closed;
    expect(begun).toEqual(['/0']);
    expect(client.text()).toMatch(/Connection: close[\s\S]*<ok>$/);
  });

  it('are not begun behind one whose reply is being sent', async () => {
    const begun: (string | undefined)[] = [];
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
    const { port } = await start((request, response) => {
      begun.push(request.url);
      response.write('<begun>');
      void mayEnd.then(() => response.end('<done>'));
    }, setting());
    const client = await open(port, isTls);
    client.socket.write(get('/1'));
    await until('the reply is begun', () => client.text().includes('<begun>'));
    client.socket.write(get('/2').repeat(400));
    const other = await open(port, isTls);
    other.socket.write(get('/other'));
    await until('the server has read them', () => begun.length === 2);
    end();
    await client.closed;
    expect(begun).toEqual(['/1', '/other']);
    expect(repliesIn(client.text())).toEqual(['<begun>', '<done>']);
  });

  it('begin once the reply before them was flushed', async () => {
    const begun: (string | undefined)[] = [];
    const { port } = await start((request, response) => {
      begun.push(request.url);
      response.end(request.url === '/big' ? Buffer.alloc(32 * MB) : '<small>');
    }, setting());
    const client = await open(port, isTls);
    client.socket.pause();
    client.socket.write(get('/big'));
    await until('the reply is begun', () => begun.length === 1);
    client.socket.write(get('/small'));
    const other = await open(port, isTls);
    other.socket.write(get('/other'));
    await until('another client is answered', () => begun.length === 2);
    expect(begun).toEqual(['/big', '/other']);
    client.socket.resume();
    await until('the second reply', () => client.endsWith('<small>'));
    expect(client.text()).not.toContain('Connection: close');
  });

  it('are not processed for a client that reads none of the replies', async () => {
    let begun = 0;
    const { port } = await start((_request, response) => {
      begun++;
      response.end(Buffer.alloc(4 * MB));
    }, setting());
    const client = await open(port, isTls);
    client.socket.pause();
    client.socket.write(get('/big').repeat(300));
    const other = await open(port, isTls);
    for (let turn = 0; turn < 3; turn++) {
      const before = begun;
      other.socket.write(get('/other'));
      await until('another client is answered', () => begun > before);
      await until('its reply', () => other.text().length >= (turn + 1) * 4 * MB);
    }
    expect(begun - 3).toBe(1);
  });

  it('get one answer if the client has half-closed its connection', async () => {
    const { listener } = echo();
    const { port } = await start(listener, setting());
    for (const more of ['', `${post('/2', 'x')}${get('/3')}`]) {
      const client = await open(port, isTls);
      client.socket.end(get('/1') + more);
      await client.closed;
      expect(repliesIn(client.text())).toEqual(['<GET /1 >']);
    }
  });

  it('end at Connection: close; later ones are not begun', async () => {
    const { listener } = echo();
    const { port } = await start(listener, setting());
    const client = await open(port, isTls);
    client.socket.write(`${get('/1', 'Connection: close\r\n')}${get('/2')}${get('/3')}`);
    await client.closed;
    expect(repliesIn(client.text())).toEqual(['<GET /1 >']);
  });

  it('do not lose the reply ahead of them if they are invalid', async () => {
    const { listener } = echo();
    const { port } = await start(listener, setting());
    for (const invalid of ['BREW /pot HTTP/1.1\r\n\r\n', '\0\r\n\r\n', `${get('/2')}\0`]) {
      const client = await open(port, isTls);
      client.socket.write(`${get('/1')}${invalid}`);
      await client.closed;
      expect(repliesIn(client.text())).toEqual(['<GET /1 >']);
    }
  });
});

describe('pipelined requests', () => {
  it('are answered in order, or not at all, wherever a packet ends', async () => {
    const three = `${get('/1')}${post('/2', 'xy')}${get('/3')}`;
    const { listener, tooEarly } = echo();
    const { port } = await start(listener);
    for (let cut = 1; cut < three.length; cut++) {
      const client = await open(port);
      client.socket.write(three.slice(0, cut));
      await new Promise(setImmediate);
      client.socket.write(three.slice(cut));
      await Promise.race([
        client.closed,
        until('three replies', () => repliesIn(client.text()).length === 3).catch(nothing),
      ]);
      const replies = repliesIn(client.text());
      expect(replies.length).toBeGreaterThan(0);
      expect(replies).toEqual(['<GET /1 >', '<POST /2 xy>', '<GET /3 >'].slice(0, replies.length));
      client.socket.destroy();
    }
    expect(tooEarly).toEqual([]);
  });

  it('of all clients together are limited: beyond that a connection is closed without an answer', async () => {
    const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>();
    const { port } = await start((_request, response) => void mayAnswer.then(() => response.end('<ok>')));
    const clients = await Promise.all(Array.from({ length: 8 }, () => open(port)));
    for (const { socket } of clients) socket.write(get('/1').repeat(1_000));
    // Each of four connections holds 999 requests.
    await Promise.any(clients.map(({ closed }) => closed));
    await until('four are closed', () => clients.filter(({ socket }) => socket.destroyed).length === 4);
    answer();
    await Promise.all(clients.map(({ closed }) => closed));
    expect(clients.filter((client) => client.text().includes('<ok>'))).toHaveLength(4);
    // These requests are counted until the server has seen the connections close.
    for (let replies: string[] = []; replies.length === 0; ) {
      const late = await open(port);
      late.socket.write(get('/1').repeat(400));
      await late.closed;
      replies = repliesIn(late.text());
    }
  });
});

describe('a client that reads nothing', () => {
  it('has its connection closed when no byte was drained in time; one whose reply has not begun has not', async () => {
    const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>();
    let isAsked = false;
    const { port } = await start(
      ({ url }, response) => {
        if (url === '/big') return void response.end(Buffer.alloc(64 * MB));
        isAsked = true;
        void mayAnswer.then(() => response.end('<late>'));
      },
      { stallMs: 30 },
    );
    const waiting = await open(port);
    waiting.socket.write(get('/slow'));
    await until('its request has come', () => isAsked);
    const { socket, closed } = await open(port);
    socket.pause();
    socket.write(get('/big').repeat(10));
    // Writing to a connection that was reset fails.
    const probing = setInterval(() => socket.destroyed || socket.write(' '), 5);
    await closed.finally(() => clearInterval(probing));
    answer();
    await until('the reply', () => waiting.text().includes('<late>'));
  });
});

describe('a server that ends', () => {
  it('does not wait for a client that reads nothing beyond the drain time', async () => {
    const begun = Promise.withResolvers<void>();
    const listener: RequestListener = (_request, response) => {
      response.write(Buffer.alloc(64 * MB));
      begun.resolve();
    };
    const { port, server } = await start(listener, { stallMs: NEVER_MS });
    const client = await open(port);
    client.socket.pause();
    client.socket.write(get('/big'));
    await begun.promise;
    await server.close(50);
  });

  it('does not wait for a silent connection or a handshake', async () => {
    for (const setting of [{}, { tls }]) {
      const { port, server } = await start(nothing, setting);
      const silent = connect(port, '127.0.0.1');
      silent.on('error', nothing);
      await once(silent, 'connect');
      await server.close(NEVER_MS);
    }
  });

  it('does not begin a request that waits behind another', async () => {
    const begun: (string | undefined)[] = [];
    const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>();
    const { port, server } = await start((request, response) => {
      begun.push(request.url);
      void mayAnswer.then(() => response.end('<done>'));
    });
    const client = await open(port);
    client.socket.write(get('/1') + get('/2'));
    await until('the first is begun', () => begun.length === 1);
    const closing = server.close(10_000);
    answer();
    await closing;
    await client.closed;
    expect(begun).toEqual(['/1']);
    expect(repliesIn(client.text())).toEqual(['<done>']);
  });
});

describe('a connection that is served later', () => {
  const held: [socket: Socket, begin: () => void][] = [];
  const accept: ServerOptions['accept'] = (socket, begin) => void held.push([socket, begin]);
  const openHeld = async (setting: Setting): Promise<[Client, Socket, () => void, HttpServer]> => {
    const { port, server } = await start(echo().listener, { accept, ...setting });
    const client = await open(port);
    await until('it is accepted', () => held.length > 0);
    const [[socket, begin] = []] = held.splice(0);
    return [client, socket as Socket, begin as () => void, server];
  };

  it('is answered from then on', async () => {
    const [client, , begin] = await openHeld({});
    client.socket.write(get('/a'));
    begin();
    await until('the reply', () => repliesIn(client.text()).length === 1);
  });

  it('may break before', async () => {
    const [client, socket] = await openHeld({});
    const closed = new Promise((resolve) => socket.once('close', resolve));
    client.socket.resetAndDestroy();
    await closed;
  });

  it('is ended if that takes too long', async () => {
    const [client] = await openHeld({ requestTimeoutMs: 50 });
    await client.closed;
  });

  it('has the time limits of requests', async () => {
    const [client, , begin] = await openHeld({ requestTimeoutMs: 50 });
    begin();
    client.socket.write('GET /a HTTP/1.1\r\n');
    await client.closed;
    expect(client.text()).toMatch(/^HTTP\/1\.1 408 /);
  });
});
