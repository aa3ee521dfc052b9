import { Agent, buildConnector } from 'undici';
import { type CertificateSeen, reportPeer } from '../ports/certificates.ts';
import type { Clock } from '../ports/clock.ts';
import { createPublicLookup, type ResolveAll } from './addresses.ts';

export interface OutgoingRequest {
  method: 'GET' | 'POST' | 'DELETE';
  url: string;
  headers: Record<string, string>;
  body?: string;
}

/** The head of an answer, with its body still to come. */
export interface IncomingAnswer {
  status: number;
  contentType: string;
  /** The header `ETag`; empty where there is none. */
  etag: string;
  body: AsyncIterable<Uint8Array>;
}

/** How requests reach a provider. Redirects are answers like any other: nobody follows them. */
export interface Transport {
  /** @throws {NotConnected} where nothing can have been sent */
  send(request: OutgoingRequest, signal: AbortSignal): Promise<IncomingAnswer>;
  close(): Promise<void>;
}

/** No connection came about: the name, a forbidden address, TLS, nobody there. */
export class NotConnected extends Error {
  override readonly name = 'NotConnected';
  readonly code = 'NOT_CONNECTED';

  constructor(cause: Error) {
    super(reasonOf(cause), { cause });
  }
}

function reasonOf(error: Error & { code?: unknown }): string {
  if (error instanceof AggregateError && error.message === '')
    return String(error.errors[0] instanceof Error ? error.errors[0].message : 'no address answered');
  return error.message;
}

/** All connections are replaced this often: one that is kept open does not show that a certificate was renewed. */
const RECONNECT_EVERY_MS = 3_600_000;

export interface WireOptions {
  allowPrivate: boolean;
  connectTimeoutMs: number;
  /** At the same time; more calls than that wait. */
  connections: number;
  /** How names are resolved; the system's way where it is left out. */
  resolve?: ResolveAll;
  /** Hears of the certificate that the other side shows. */
  certificateSeen?: CertificateSeen | undefined;
  clock: Pick<Clock, 'now'>;
}

/** TCP and TLS, with connections of its own that are kept open between requests. */
export function createWireTransport(options: WireOptions): Transport {
  const { allowPrivate, connectTimeoutMs, connections, resolve, certificateSeen, clock } = options;
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    // A session that is resumed shows the certificate from before.
    maxCachedSessions: 0,
    ...(!allowPrivate && { lookup: createPublicLookup(resolve) }),
  });
  const createAgent = (): Agent =>
    new Agent({
      connections,
      // The whole of a call is bounded by its caller.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (target, callback) =>
        connect(target, (...[error, socket]) => {
          if (certificateSeen !== undefined) reportPeer(certificateSeen, error, socket);
          return error === null ? callback(null, socket) : callback(new NotConnected(error), null);
        }),
    });
  let agent = createAgent();
  let createdAt = clock.now();
  /** Its last calls may be under way, until an hour later none is. */
  let previous: Agent | undefined;
  const replace = (): void => {
    void previous?.destroy();
    previous = agent;
    agent = createAgent();
    createdAt = clock.now();
  };
  return {
    async send({ method, url, headers, body }, signal) {
      // Not by undici's clientTtl: where every connection is that old, a call waits for one forever.
      if (clock.now() - createdAt >= RECONNECT_EVERY_MS) replace();
      const { origin, pathname, search } = new URL(url);
      const answer = await agent.request({
        origin,
        path: `${pathname}${search}`,
        method,
        headers,
        signal,
        body: body ?? null,
      });
      // Who stops reading ends the body early, and that is no error of anybody's.
      answer.body.on('error', () => undefined);
      const { 'content-type': contentType, etag } = answer.headers;
      return {
        status: answer.statusCode,
        contentType: typeof contentType === 'string' ? contentType : '',
        etag: typeof etag === 'string' ? etag : '',
        body: answer.body,
      };
    },
    close: async () => void (await Promise.all([agent.destroy(), previous?.destroy()])),
  };
}

/** What {@link createFetchTransport} takes: `fetch`, or a server in the same process. */
export type Fetch = (url: string, init: RequestInit) => Response | Promise<Response>;

/** For an orchestrator in the same process, which has no address. */
export function createFetchTransport(fetch: Fetch): Transport {
  return {
    async send({ method, url, headers, body }, signal) {
      const answer = await fetch(url, {
        method,
        headers,
        signal,
        redirect: 'manual',
        ...(body !== undefined && { body }),
      });
      return {
        status: answer.status,
        contentType: answer.headers.get('content-type') ?? '',
        etag: answer.headers.get('etag') ?? '',
        body: answer.body ?? noBody(),
      };
    },
    close: async () => undefined,
  };
}

async function* noBody(): AsyncGenerator<Uint8Array> {}
