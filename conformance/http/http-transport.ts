import { X509Certificate } from 'node:crypto';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { connect, type Socket } from 'node:net';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { type Connections, HttpExchange } from './http-exchange.ts';
import type { HttpAnswer, HttpFailure, HttpRequest, SendLimits, Transport } from './transport.ts';

export interface HttpTransportOptions {
  /** PEM certificates of additional trusted authorities. */
  ca?: string;
}

/** Shorter than the idle timeouts of servers (Node.js: 5 s) and proxies. */
const IDLE_MS = 4_000;
/** Timeout for one address of a host name before the next one is tried. */
const ADDRESS_ATTEMPT_MS = 1_000;

/**
 * Plain HTTP/1.1: no redirects, cookies, proxies or extra headers; certificates are verified. Times exclude DNS, TCP
 * and TLS, the timeout includes them. If a reused connection is stale, a GET or HEAD is sent again on a new one. Other
 * requests always use new ones and are never repeated: they may have created a machine.
 * @throws if `ca` has no certificate.
 */
export function httpTransport(options: HttpTransportOptions = {}): Transport {
  return new HttpTransport(options);
}

class HttpTransport implements Transport {
  readonly #agents: Record<'http' | 'https', Connections>;
  readonly #sockets = new Set<Socket>();
  readonly #closing = new AbortController();

  constructor({ ca }: HttpTransportOptions) {
    const settings = { autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS };
    const keptAlive = { ...settings, keepAlive: true, timeout: IDLE_MS };
    const tls = {
      rejectUnauthorized: true,
      // Each connection shows the target's key: one that resumes a session shows none.
      maxCachedSessions: 0,
      ...(ca !== undefined && { secureContext: contextTrusting(ca) }),
    };
    this.#agents = {
      http: { kept: new HttpAgent(keptAlive), fresh: new HttpAgent(settings) },
      https: {
        kept: new HttpsAgent({ ...keptAlive, ...tls }),
        fresh: new HttpsAgent({ ...settings, ...tls }),
      },
    };
  }

  async send(request: HttpRequest, limits: SendLimits): Promise<HttpAnswer | HttpFailure> {
    const startedAt = performance.now();
    const mayBeRepeated = request.method === 'GET' || request.method === 'HEAD';
    const first = this.#exchange(request, limits, startedAt, mayBeRepeated ? 'kept' : 'fresh');
    let outcome = await first.run();
    if (mayBeRepeated && first.wasStale)
      outcome = await this.#exchange(request, limits, startedAt, 'fresh').run();
    return 'failure' in outcome ? { ...outcome, totalMs: performance.now() - startedAt } : outcome;
  }

  #exchange(
    request: HttpRequest,
    limits: SendLimits,
    startedAt: number,
    connection: keyof Connections,
  ): HttpExchange {
    const url = new URL(request.url);
    const agent = this.#agents[url.protocol === 'https:' ? 'https' : 'http'][connection];
    return new HttpExchange(request, url, {
      agent,
      limits,
      endsAt: startedAt + limits.timeoutMs,
      closing: this.#closing.signal,
      onSocket: (socket) => this.#track(socket),
    });
  }

  /** Excludes DNS: measured from the last connection attempt to its success. */
  roundTripMs(url: string, timeoutMs: number): Promise<number | undefined> {
    const { hostname, port, protocol } = new URL(url);
    const host = hostname.replace(/^\[|\]$/g, '');
    return new Promise((resolve) => {
      if (this.#closing.signal.aborted) return resolve(undefined);
      let begunAt = performance.now();
      const socket = connect({
        host,
        port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
        autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
      });
      this.#track(socket);
      const timer = setTimeout(() => socket.destroy(), timeoutMs);
      let result: number | undefined;
      socket.on('connectionAttempt', () => {
        begunAt = performance.now();
      });
      socket.once('connect', () => {
        result = performance.now() - begunAt;
        socket.destroy();
      });
      socket.on('error', () => {});
      socket.once('close', () => {
        clearTimeout(timer);
        resolve(result);
      });
    });
  }

  /** Ends pending exchanges as `interrupted`, and closes all connections. */
  async close(): Promise<void> {
    this.#closing.abort();
    const closed = [...this.#sockets].map(
      (socket) => new Promise<void>((resolve) => socket.once('close', () => resolve())),
    );
    for (const { kept, fresh } of Object.values(this.#agents)) {
      kept.destroy();
      fresh.destroy();
    }
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(closed);
  }

  #track(socket: Socket): void {
    if (this.#sockets.has(socket)) return;
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }
}

function contextTrusting(ca: string): SecureContext {
  // A TLS context would accept text without a certificate as an empty list.
  new X509Certificate(ca);
  return createSecureContext({ ca: [...getCACertificates('default'), ca] });
}
