import { X509Certificate } from 'node:crypto';
import { getCACertificates } from 'node:tls';
import { Agent, buildConnector } from 'undici';
import { decode } from './http-exchange.ts';
import { type ExchangePhase, toHttpFailure } from './http-failure.ts';
import type { HttpTransportOptions } from './http-transport.ts';
import type { HttpAnswer, HttpFailure, HttpRequest, SendLimits, Transport } from './transport.ts';

/** As a marketplace has them: connections at most, and the limit for opening one. */
const CONNECTIONS = 32;
const CONNECT_TIMEOUT_MS = 15_000;
const MAX_HEADER_BYTES = 16_384;

/**
 * Sends requests byte for byte as a marketplace's client does: through undici, on connections that are kept for all
 * methods, without headers of its own. Nothing is sent twice.
 * @throws if `ca` has no certificate.
 */
export function marketplaceTransport({ ca }: HttpTransportOptions = {}): Transport {
  if (ca !== undefined) new X509Certificate(ca);
  const connect = buildConnector({
    timeout: CONNECT_TIMEOUT_MS,
    // A marketplace looks at each certificate anew.
    maxCachedSessions: 0,
    ...(ca !== undefined && { ca: [...getCACertificates('default'), ca] }),
  });
  const agent = new Agent({
    connections: CONNECTIONS,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (target, callback) =>
      connect(target, (...[error, socket]) =>
        error === null ? callback(null, socket) : callback(new NotConnected(error), null),
      ),
  });
  return {
    send: (request, limits) => new Sending(agent, request, limits).run(),
    // A connection without a request would give a plain run away.
    roundTripMs: async () => undefined,
    close: () => agent.destroy(),
  };
}

class NotConnected extends Error {
  override readonly cause: Error & { code?: string; syscall?: string };

  constructor(cause: Error) {
    super(cause.message);
    this.cause = cause;
  }

  get phase(): ExchangePhase {
    const { code = '', syscall } = this.cause;
    if (syscall === 'getaddrinfo') return 'resolve';
    return syscall === 'connect' || code.startsWith('UND_ERR_CONNECT') || code.startsWith('ECONN')
      ? 'connect'
      : 'tls';
  }
}

/** One request and its outcome. */
class Sending {
  readonly #agent: Agent;
  readonly #request: HttpRequest;
  readonly #limits: SendLimits;
  readonly #begunAt = performance.now();
  #sentAt: number | undefined;
  #firstByteAt: number | undefined;
  #status = 0;
  #headers: Record<string, string> = {};
  #chunks: Buffer[] = [];
  #bodyBytes = 0;
  #abort: (() => void) | undefined;
  #settle: ((outcome: HttpAnswer | HttpFailure) => void) | undefined;

  constructor(agent: Agent, request: HttpRequest, limits: SendLimits) {
    this.#agent = agent;
    this.#request = request;
    this.#limits = limits;
  }

  run(): Promise<HttpAnswer | HttpFailure> {
    const { promise, resolve } = Promise.withResolvers<HttpAnswer | HttpFailure>();
    const { signal, timeoutMs } = this.#limits;
    const interrupt = () => this.#fail('interrupted', 'the run was interrupted');
    const timer = setTimeout(
      () => this.#fail('timeout', `no complete answer from ${this.#address} within ${timeoutMs} ms`),
      timeoutMs,
    );
    signal?.addEventListener('abort', interrupt);
    this.#settle = (outcome) => {
      this.#settle = undefined;
      clearTimeout(timer);
      signal?.removeEventListener('abort', interrupt);
      resolve(outcome);
      this.#abort?.();
    };
    if (signal?.aborted === true) interrupt();
    else this.#dispatch();
    return promise;
  }

  #dispatch(): void {
    const { method, url, headers, body } = this.#request;
    const { origin, pathname, search } = new URL(url);
    const options = { origin, path: `${pathname}${search}`, method, headers, body: body ?? null };
    this.#agent.dispatch(options as Parameters<Agent['dispatch']>[0], {
      onRequestStart: (controller) => {
        this.#sentAt = performance.now();
        this.#abort = () => controller.abort(new Error('the exchange is over'));
        if (this.#settle === undefined) this.#abort();
      },
      onResponseStart: (_controller, status, received) => {
        this.#firstByteAt = performance.now();
        this.#status = status;
        this.#headers = Object.fromEntries(
          Object.entries(received).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]),
        );
      },
      onResponseData: (_controller, chunk) => {
        this.#bodyBytes += chunk.length;
        if (this.#bodyBytes > this.#limits.maxBodyBytes) this.#failTooLarge();
        else this.#chunks.push(chunk);
      },
      onResponseEnd: () => this.#answer(),
      onResponseError: (_controller, error) => this.#failWith(error),
    });
  }

  #answer(): void {
    const endedAt = performance.now();
    const sentAt = this.#sentAt ?? this.#begunAt;
    const body = decode(
      Buffer.concat(this.#chunks),
      this.#headers['content-encoding'],
      this.#limits.maxBodyBytes,
    );
    this.#abort = undefined;
    if (body === undefined) this.#failTooLarge();
    this.#settle?.({
      status: this.#status,
      headers: this.#headers,
      body: body?.toString('utf8') ?? '',
      firstByteMs: (this.#firstByteAt ?? endedAt) - sentAt,
      totalMs: endedAt - sentAt,
    });
  }

  #failTooLarge(): void {
    const limit = `${this.#limits.maxBodyBytes} bytes`;
    this.#fail('too_large', `the body of the answer is larger than ${limit} and was cut off there`);
  }

  #failWith(error: Error): void {
    const { hostname: host, protocol } = new URL(this.#request.url);
    const place = { host, address: this.#address, isTls: protocol === 'https:' };
    const answering = this.#firstByteAt === undefined ? 'wait' : 'answer';
    const [cause, phase] =
      error instanceof NotConnected ? [error.cause, error.phase] : ([toWireError(error), answering] as const);
    const progress = { bodyBytes: this.#bodyBytes, maxHeaderBytes: MAX_HEADER_BYTES };
    const { failure, message } = toHttpFailure(cause, phase, place, progress);
    this.#fail(failure, message);
  }

  #fail(failure: HttpFailure['failure'], message: string): void {
    this.#settle?.({ failure, message, totalMs: performance.now() - this.#begunAt });
  }

  get #address(): string {
    const { hostname, port, protocol } = new URL(this.#request.url);
    return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
  }
}

/** undici's errors under the codes of Node's parser and sockets. */
function toWireError(error: Error & { code?: string }): Error & { code?: string } {
  const code = codes[error.code ?? error.name] ?? error.code;
  return Object.assign(new Error(error.message, { cause: error }), code === undefined ? {} : { code });
}

const codes: Readonly<Record<string, string>> = {
  HTTPParserError: 'HPE_INVALID',
  UND_ERR_HEADERS_OVERFLOW: 'HPE_HEADER_OVERFLOW',
  UND_ERR_SOCKET: 'ECONNRESET',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'ECONNRESET',
};
