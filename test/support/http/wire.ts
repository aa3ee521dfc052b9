import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { requestIds } from '../../../src/http/api/request-context.ts';
import { HttpServer, type ServerOptions } from '../../../src/http/wire/server.ts';
import { refuseWire } from '../../../src/orchestrator/http/errors.ts';
import { systemRandom } from '../../../src/runtime/system.ts';
import { silentLog } from '../doubles/log.ts';
import { PATIENCE_MS } from '../time/until.ts';
import { assertKeepsContract } from './contract.ts';

/** A listener behind the real server, on a free port; an orchestrator's, unless `refuse` is another's. `await using` ends it. */
export async function startServer(
  { listener }: { listener: RequestListener },
  {
    requestTimeoutMs = 10_000,
    refuse = refuseWire,
    tls,
  }: Partial<Pick<ServerOptions, 'requestTimeoutMs' | 'refuse' | 'tls'>> = {},
) {
  const log = silentLog;
  const options = {
    host: '127.0.0.1',
    port: 0,
    tls,
    requestTimeoutMs,
    log,
    nextId: requestIds(systemRandom),
    refuse,
  };
  const server = new HttpServer(listener, options);
  const port = await server.listen(options);
  return {
    port,
    server,
    [Symbol.asyncDispose]: () => server.close(0),
  };
}

/** One reply as it came over the wire. */
export interface WireReply {
  status: number;
  /** Lower-case names; as sent, in their order. */
  headers: Map<string, string>;
  rawHeaders: string[];
  body: string;
}

/** A TCP connection that says exactly what a test wants it to. */
export class WireClient {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #received = Buffer.alloc(0);
  #isClosed = false;
  #changed = Promise.withResolvers<void>();

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('error', () => undefined);
    this.socket.on('data', (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#notify();
    });
    this.closed = new Promise((resolve) => {
      this.socket.on('close', () => {
        this.#isClosed = true;
        this.#notify();
        resolve();
      });
    });
  }

  static async open(port: number): Promise<WireClient> {
    const client = new WireClient(port);
    await once(client.socket, 'connect');
    return client;
  }

  send(bytes: string | Buffer): void {
    if (this.socket.writable) this.socket.write(bytes);
  }

  /** Says the head of a request, and its body if it has one. */
  request(method: string, path: string, headers: Record<string, string> = {}, body = ''): void {
    const lines = Object.entries({ Host: 'berth.test', ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    this.send(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  }

  /** The next reply in full; undefined if the connection ends before there is one. Every one keeps the contract. */
  async reply(method = 'GET', path = '/v1/x'): Promise<WireReply | undefined> {
    const reply = await this.rawReply(method);
    if (reply === undefined) return undefined;
    const { status, headers, body } = reply;
    assertKeepsContract({ method, path, status, contentType: headers.get('content-type') ?? null, body });
    return reply;
  }

  /** As {@link reply}, of a server that has another contract. */
  async rawReply(method = 'GET'): Promise<WireReply | undefined> {
    const late = setTimeout(() => this.socket.destroy(new Error('no reply in time')), PATIENCE_MS);
    try {
      for (;;) {
        const reply = this.#take(method);
        if (reply !== undefined) return reply;
        if (this.#isClosed) return undefined;
        await this.#changed.promise;
      }
    } finally {
      clearTimeout(late);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
    await this.closed;
  }

  #take(method: string): WireReply | undefined {
    const end = this.#received.indexOf('\r\n\r\n');
    if (end === -1) return undefined;
    const [statusLine = '', ...lines] = this.#received.subarray(0, end).toString('latin1').split('\r\n');
    const status = Number(statusLine.split(' ')[1]);
    const rawHeaders = lines.map((line) => line);
    const headers = new Map(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const hasBody = method !== 'HEAD' && status !== 304 && status !== 204 && status >= 200;
    const bodyEnd = end + 4 + (hasBody ? Number(headers.get('content-length') ?? 0) : 0);
    if (this.#received.length < bodyEnd) return undefined;
    const body = this.#received.subarray(end + 4, bodyEnd).toString('utf8');
    this.#received = this.#received.subarray(bodyEnd);
    if (status === 100) return this.#take(method);
    return { status, headers, rawHeaders, body };
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
