import { Agent, buildConnector } from 'undici';
import { allowedLookup, type ResolveAll } from '../contract/allowed-lookup.ts';
import { type CertificateSeen, reportPeer } from '../ports/certificates.ts';
import type { Clock } from '../ports/clock.ts';
import { isForbiddenAddress } from './addresses.ts';

export interface OutgoingRequest {
  method: 'GET' | 'POST' | 'DELETE';
  url: string;
  headers: Record<string, string>;
  body?: string;
}

/** The head of an answer. Its body is still to be read. */
export interface IncomingAnswer {
  status: number;
  contentType: string;
  /** The header `ETag`; empty if there is none. */
  etag: string;
  body: AsyncIterable<Uint8Array>;
}

/** Sends requests to a provider. Redirects are answers like any other and are not followed. */
export interface Transport {
  /** @throws {NotConnected} if nothing can have been sent */
  send(request: OutgoingRequest, signal: AbortSignal): Promise<IncomingAnswer>;
  close(): Promise<void>;
}

/** No connection was made: the name, a forbidden address, TLS, or no listener. */
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

/** All connections are replaced at this interval: one that stays open never shows a renewed certificate. */
const RECONNECT_EVERY_MS = 3_600_000;

export interface WireOptions {
  allowPrivate: boolean;
  connectTimeoutMs: number;
  /** Maximum number of connections. Further calls wait. */
  connections: number;
  /** Resolves host names. Default: the system's resolver. */
  resolve?: ResolveAll;
  /** Called with the certificate of the server. */
  certificateSeen?: CertificateSeen | undefined;
  /** PEM certificates of the authority to trust. Default: those that Node trusts. */
  ca?: string | undefined;
  clock: Pick<Clock, 'now'>;
}

/** A transport over TCP and TLS. It keeps its connections open between requests. */
export function createWireTransport(options: WireOptions): Transport {
  const { allowPrivate, connectTimeoutMs, connections, resolve, certificateSeen, ca, clock } = options;
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    // A resumed session shows the old certificate.
    maxCachedSessions: 0,
    ...(ca !== undefined && { ca }),
    ...(!allowPrivate && { lookup: allowedLookup(isForbiddenAddress, { resolve, verb: 'resolves to' }) }),
  });
  const createAgent = (): Agent =>
    new Agent({
      connections,
      // The caller limits the time of the whole call.
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
  /** The previous agent may still have calls under way. It is destroyed an hour later. */
  let previous: Agent | undefined;
  const replace = (): void => {
    void previous?.destroy();
    previous = agent;
    agent = createAgent();
    createdAt = clock.now();
  };
  return {
    async send({ method, url, headers, body }, signal) {
      // undici's clientTtl does not work here: if every connection is that old, a call waits forever.
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
      // A reader that stops early ends the body. That is not an error.
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

/** The parameter of {@link createFetchTransport}: `fetch`, or a server in the same process. */
export type Fetch = (url: string, init: RequestInit) => Response | Promise<Response>;

/** Creates the transport to an orchestrator in the same process, which has no address. */
export function createFetchTransport(fetch: Fetch): Transport {
  return {
    async send({ method, url, headers, body }, signal) {
      const answer = await fetch(url, {
        method,
        headers,
        signal,
        redirect: 'manual',
        body,
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
