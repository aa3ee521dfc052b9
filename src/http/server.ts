import {
  createServer,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Log } from '../ports/log.ts';

/** What is wrong with a request that is none yet. */
export type WireProblem = 'malformed' | 'timed_out' | 'headers_too_large';

/** A reply to it: `code` is for the log. */
export interface WireRefusal {
  status: number;
  code: string;
  body: object;
  /** Beside those that every reply has. */
  headers?: Readonly<Record<string, string>>;
}

export interface ServerOptions {
  host: string;
  /** 0: any free one. */
  port: number;
  tls?: { cert: Buffer; key: Buffer } | undefined;
  /** A request that has not arrived in full by then is 408. */
  requestTimeoutMs: number;
  /** Makes the id of a request that got no further than its first bytes. */
  nextId: () => string;
  /** In the shape of the server's own errors. */
  refuse: (problem: WireProblem, remoteAddress: string | undefined) => WireRefusal;
  log: Log;
}

/** Longer than the client's poll interval (10 to 30 s), so that polls reuse their connection. */
const KEEP_ALIVE_MS = 75_000;
/** How long a refused client may take to read why, before its connection is cut. */
const LINGER_MS = 1_000;
const IDLE_CHECK_MS = 50;

/** A listening server. What is wrong below HTTP is answered with the envelope too. */
export class HttpServer {
  readonly #server: Server;
  readonly #options: Pick<ServerOptions, 'nextId' | 'refuse' | 'log'>;
  /** The reply that each connection waits for, or had last. */
  readonly #replies = new WeakMap<Duplex, ServerResponse>();
  readonly #refused = new WeakSet<Duplex>();

  constructor(listener: RequestListener, options: ServerOptions) {
    const { tls, requestTimeoutMs } = options;
    const settings = {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
      // The listener refuses it with the envelope.
      requireHostHeader: false,
    };
    const listen: RequestListener = (request, response) => {
      this.#replies.set(request.socket, response);
      return listener(request, response);
    };
    this.#options = options;
    this.#server =
      tls === undefined ? createServer(settings, listen) : createTlsServer({ ...settings, ...tls }, listen);
    this.#server.on('checkExpectation', listen);
    this.#server.on(tls === undefined ? 'connection' : 'secureConnection', (socket) => this.#linger(socket));
    this.#server.on('clientError', (error, socket) => this.#refuse(error, socket));
  }

  /** Rejects with the system's error (`EADDRINUSE`, `EACCES` …). */
  async listen({ host, port }: Pick<ServerOptions, 'host' | 'port'>): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject);
    this.#server.listen(port, host, resolve);
    await promise;
    this.#server.off('error', reject);
    // Of a single connection, such as EMFILE: the others are served on.
    this.#server.on('error', (err) => this.#options.log.error({ err }, 'a connection was not accepted'));
    return (this.#server.address() as AddressInfo).port;
  }

  /** Takes no new request and lets those that run finish, for at most `drainMs`. */
  async close(drainMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    // A connection whose last request ends now would otherwise be kept alive.
    const idleCheck = setInterval(() => this.#server.closeIdleConnections(), IDLE_CHECK_MS);
    const timeout = setTimeout(() => this.#server.closeAllConnections(), drainMs);
    this.#server.closeIdleConnections();
    await promise;
    clearInterval(idleCheck);
    clearTimeout(timeout);
  }

  #refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
    if (this.#refused.has(socket)) return;
    this.#refused.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable || this.#owesAnotherReply(socket)) {
      socket.destroy();
      return;
    }
    const { remoteAddress } = socket as Partial<Socket>;
    const refusal = this.#options.refuse(problems[error.code ?? ''] ?? 'malformed', remoteAddress);
    const requestId = this.#options.nextId();
    this.#options.log.info(
      { requestId, status: refusal.status, code: refusal.code, cause: error.code },
      'request refused below HTTP',
    );
    socket.end(toText(refusal, requestId));
    destroyLate(socket);
  }

  /**
   * node:http closes as soon as the last reply is written. A client that is still sending would have its connection
   * reset, and lose the reply: what it sends is thrown away until it has read, or for a while.
   */
  #linger(socket: Socket): void {
    const destroySoon = socket.destroySoon.bind(socket);
    let isLingering = false;
    socket.destroySoon = () => {
      const request = this.#replies.get(socket)?.req;
      if (request === undefined || request.complete) return destroySoon();
      if (isLingering) return;
      isLingering = true;
      socket.end();
      // Whoever read the body has stopped, and would hold up the rest.
      request.removeAllListeners('data').resume();
      destroyLate(socket);
    };
  }

  /**
   * Whether the client waits for the reply to an earlier, complete request, or has part of one: it would take the
   * refusal for that.
   */
  #owesAnotherReply(socket: Duplex): boolean {
    const reply = this.#replies.get(socket);
    if (reply === undefined || reply.writableFinished) return false;
    return reply.headersSent || reply.req.complete;
  }
}

function destroyLate(socket: Duplex): void {
  const late = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(late));
}

function toText(refusal: WireRefusal, requestId: string): string {
  const body = JSON.stringify(refusal.body);
  return [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Cache-Control: no-store',
    ...Object.entries(refusal.headers ?? {}).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

const problems: Readonly<Record<string, WireProblem>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'timed_out',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
};
