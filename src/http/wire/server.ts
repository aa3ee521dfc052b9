import { createServer, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import {
  type AddressInfo,
  createServer as createNetServer,
  type Server as NetServer,
  type Socket,
} from 'node:net';
import type { Duplex } from 'node:stream';
import type { Log } from '../../ports/log.ts';
import { Connection } from './connection.ts';
import { OpenConnections } from './open-connections.ts';

/** A problem that prevents bytes from becoming a request. */
export type WireProblem = 'malformed' | 'timed_out' | 'headers_too_large';

/** The reply to such a problem. `code` is for the log. */
export interface WireRefusal {
  status: number;
  code: string;
  body: object;
  /** Headers in addition to those of every reply. */
  headers?: Readonly<Record<string, string>>;
}

export interface ServerOptions {
  host: string;
  /** 0 takes any free port. */
  port: number;
  tls?: { cert: Buffer; key: Buffer } | undefined;
  /** Called with each new connection in place of serving it. It is served from `begin` on, with `tls` if given. */
  accept?: (socket: Socket, begin: (tls?: { cert: Buffer; key: Buffer }) => void) => void;
  /** A request that is incomplete by then is answered 408. */
  requestTimeoutMs: number;
  /** Maximum connections of one address, except loopback. 0 or absent for no limit. */
  connectionsPerAddress?: number;
  /** A reply of which the kernel takes no byte for this time ends its connection; default: 30 s. */
  stallMs?: number;
  /** Generates the id of a request that could not be parsed. */
  nextId: () => string;
  /** Creates the reply in the format of the server's errors. */
  refuse: (problem: WireProblem, remoteAddress: string | undefined) => WireRefusal;
  log: Log;
}

/** Longer than the client's poll interval (10 to 30 s), so that polls reuse their connection. */
const KEEP_ALIVE_MS = 75_000;
const STALL_MS = 30_000;
const DRAIN_CHECK_MS = 1_000;
const IDLE_CHECK_MS = 50;
/** How long a server that shuts down waits for the first byte of a connection: data may be in transit. */
const SILENCE_MS = 1_000;
/** Minimum time between two log lines about refused connections. */
const LOG_EVERY_MS = 60_000;

/** A listening server. Errors below HTTP are also answered with the envelope. */
export class HttpServer {
  readonly #server: Server;
  /** Listens. Another than `#server` if its connections are not served at once. */
  readonly #listener: NetServer;
  readonly #options: Pick<ServerOptions, 'nextId' | 'refuse' | 'log'>;
  readonly #open: OpenConnections;
  readonly #connections = new WeakMap<Duplex, Connection>();
  #drainCheck: NodeJS.Timeout | undefined;
  #turnedAwayLoggedAt = Number.NEGATIVE_INFINITY;

  constructor(listener: RequestListener, options: ServerOptions) {
    const { tls, accept, requestTimeoutMs, connectionsPerAddress = 0, stallMs = STALL_MS } = options;
    const settings = {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
      // The listener refuses a request without a Host header itself, with the envelope.
      requireHostHeader: false,
    };
    const listen: RequestListener = (request, response) =>
      this.#connections.get(request.socket)?.take(response);
    this.#options = options;
    this.#open = new OpenConnections(
      connectionsPerAddress === 0 ? Number.POSITIVE_INFINITY : connectionsPerAddress,
    );
    this.#server =
      tls === undefined
        ? createServer(settings, listen)
        : createTlsServer(
            { ...settings, ...tls, handshakeTimeout: requestTimeoutMs, allowHalfOpen: true },
            listen,
          );
    this.#listener = accept === undefined ? this.#server : this.#acceptor(accept, requestTimeoutMs);
    // Must run before the connection is attached.
    this.#listener.prependListener('connection', (socket: Socket) => this.#admit(socket));
    this.#server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) =>
      this.#attach(socket, listener),
    );
    // Node calls back only if the kernel has taken nothing in this time, and also when a connection was kept alive for long.
    this.#server.setTimeout(stallMs, (socket) => this.#endInactive(socket));
    this.#server.on('checkExpectation', listen);
    this.#server.on('clientError', (error, socket) => this.#refuse(error, socket));
    // A client that closes its sending half is still answered.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
  }

  /** Listens and returns the port. Rejects with the system's error (`EADDRINUSE`, `EACCES` …). */
  async listen({ host, port }: Pick<ServerOptions, 'host' | 'port'>): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#listener.once('error', reject);
    this.#listener.listen(port, host, resolve);
    await promise;
    this.#listener.off('error', reject);
    // An error of a single connection, such as EMFILE. The others are still served.
    this.#listener.on('error', (err) => this.#options.log.error({ err }, 'a connection was not accepted'));
    // Node's server checks the time limits of requests from then on.
    if (this.#listener !== this.#server) this.#server.emit('listening');
    this.#drainCheck = setInterval(() => {
      for (const { connection } of this.#open) connection?.pauseUntilDrained();
    }, DRAIN_CHECK_MS).unref();
    return (this.#listener.address() as AddressInfo).port;
  }

  /** Uses these files for new connections. Open ones continue. Throws if certificate and key do not match. */
  useTls(tls: { cert: Buffer; key: Buffer }): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext(tls);
  }

  /** Calls back when the server has closed. */
  onClosed(callback: () => void): void {
    this.#listener.once('close', callback);
  }

  /** Returns the TCP socket of an open connection: below its TLS, if it has any. */
  tcpSocketOf(socket: Socket): Socket {
    return this.#open.tcpSocketOf(socket);
  }

  /** Accepts no new request and lets running requests finish, for at most `drainMs`. */
  async close(drainMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#listener.close(() => resolve());
    if (this.#server !== this.#listener) this.#server.close();
    for (const { connection } of this.#open) connection?.closeAfterReply();
    const silence = setTimeout(() => {
      for (const { socket, connection } of this.#open) if (!connection?.hasReceived) socket.destroy();
    }, SILENCE_MS);
    // A connection whose last request just finished would otherwise be kept alive.
    const idleCheck = setInterval(() => this.#server.closeIdleConnections(), IDLE_CHECK_MS);
    const timeout = setTimeout(() => {
      for (const { socket } of this.#open) socket.destroy();
    }, drainMs);
    this.#server.closeIdleConnections();
    await promise;
    clearInterval(this.#drainCheck);
    clearInterval(idleCheck);
    clearTimeout(silence);
    clearTimeout(timeout);
  }

  /** A connection that is not served after `waitMs` is ended. */
  #acceptor(accept: NonNullable<ServerOptions['accept']>, waitMs: number): NetServer {
    return createNetServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      if (socket.destroyed) return;
      const end = (): void => void socket.destroy();
      socket.on('error', end).setTimeout(waitMs, end);
      accept(socket, (tls) => {
        if (tls !== undefined) this.useTls(tls);
        socket.off('error', end).setTimeout(0).off('timeout', end);
        this.#server.emit('connection', socket);
      });
    });
  }

  #admit(socket: Socket): void {
    if (this.#open.admit(socket)) return;
    socket.destroy();
    const now = performance.now();
    if (now - this.#turnedAwayLoggedAt < LOG_EVERY_MS) return;
    this.#turnedAwayLoggedAt = now;
    this.#options.log.warn(
      { address: socket.remoteAddress },
      'a connection was refused: its address already has server.connections_per_address connections, all in use',
    );
  }

  #attach(socket: Socket, listener: RequestListener): void {
    if (socket.destroyed) return;
    const connection = new Connection(socket, listener);
    this.#connections.set(socket, connection);
    this.#open.attach(connection);
  }

  #endInactive(socket: Socket): void {
    const isStalled = socket.writableLength > 0;
    // A handler that is still at work, and a connection without a request, have other limits.
    if (!isStalled && !this.#connections.get(socket)?.hasReplied) return;
    if (isStalled)
      this.#options.log.info(
        { address: socket.remoteAddress },
        'a client did not read its reply for too long: connection closed',
      );
    socket.destroy();
  }

  #refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
    const connection = this.#connections.get(socket);
    if (error.code === 'ECONNRESET' || connection === undefined) {
      socket.destroy();
      return;
    }
    const { remoteAddress } = connection.socket;
    connection.refuse(() => {
      const refusal = this.#options.refuse(problems[error.code ?? ''] ?? 'malformed', remoteAddress);
      const requestId = this.#options.nextId();
      const { status, code } = refusal;
      this.#options.log.info(
        { request_id: requestId, status, code, cause: error.code, address: remoteAddress },
        'request refused below HTTP',
      );
      return toText(refusal, requestId);
    });
  }
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
