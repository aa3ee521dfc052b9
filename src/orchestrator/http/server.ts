import { createServer, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { ApiError, type ErrorCode } from '../../contract/errors.ts';

export interface ServerOptions {
  host: string;
  /** 0: any free one. */
  port: number;
  tls?: { cert: Buffer; key: Buffer } | undefined;
  /** A request that has not arrived in full by then is 408. */
  requestTimeoutMs: number;
}

/** Longer than the client's poll interval (10 to 30 s), so that polls reuse their connection. */
const KEEP_ALIVE_MS = 75_000;

/** A listening server. What is wrong below HTTP is answered with the envelope too. */
export class HttpServer {
  readonly #server: Server;

  constructor(listener: RequestListener, { tls, requestTimeoutMs }: ServerOptions) {
    const options = {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
    };
    this.#server =
      tls === undefined ? createServer(options, listener) : createTlsServer({ ...options, ...tls }, listener);
    this.#server.on('clientError', answerClientError);
  }

  /** Rejects with the system's error (`EADDRINUSE`, `EACCES` …). */
  async listen({ host, port }: ServerOptions): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject);
    this.#server.listen(port, host, resolve);
    await promise;
    return (this.#server.address() as AddressInfo).port;
  }

  /** Takes no new request and lets those that run finish, for at most `drainMs`. */
  async close(drainMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeIdleConnections();
    const timeout = setTimeout(() => this.#server.closeAllConnections(), drainMs);
    await promise;
    clearTimeout(timeout);
  }
}

function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const body = JSON.stringify(toClientError(error.code).toBody());
  const { status } = toClientError(error.code);
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}

const clientErrors: Record<string, [ErrorCode, string]> = {
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request did not arrive in full in time.'],
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'The request headers are too large.'],
};

function toClientError(code = ''): ApiError {
  const [errorCode, message] = clientErrors[code] ?? [
    'invalid_request',
    'The request is not well-formed HTTP/1.1.',
  ];
  return new ApiError(
    errorCode,
    message,
    errorCode === 'invalid_request' ? { details: { issues: [{ path: '', message }] } } : {},
  );
}
