import type { RequestListener } from 'node:http';
import type { OpenAPIHono } from '@hono/zod-openapi';
import { appListener } from '../../http/api/listener.ts';
import { countHeader } from '../../http/wire/client-address.ts';
import type { PreparedReply } from '../instances/polled-reads.ts';
import { isNoneMatch, PRIVATE } from './conditional.ts';
import type { HttpDeps, HttpEnv } from './deps.ts';
import { errors } from './errors.ts';

type PollDeps = Pick<HttpDeps, 'authenticator' | 'polledReads' | 'rateLimits' | 'metrics'> & {
  nextId: () => string;
};

const PREFIX = '/v1/instances/';

export interface PolledReadAnswer {
  status: 200 | 304;
  /** Names and values in turn. */
  headers: string[];
  /** Undefined for a 304. */
  body: string | undefined;
}

export type PolledReadAnswers = ReturnType<typeof createPolledReadAnswers>;

/**
 * Answers `GET /v1/instances/{id}` directly from the prepared body (O: Instances, rule 2) if the credential was checked
 * within two seconds, the instance is this account's, and it is not polled too often. The app gets all other requests,
 * including refusals.
 */
export function createPolledReadAnswers({
  authenticator,
  polledReads,
  rateLimits,
  metrics,
  nextId,
}: PollDeps) {
  return {
    /** The prepared reply to a request. Undefined if it is none of these reads, or not prepared. */
    find(method: string | undefined, url: string | undefined): PreparedReply | undefined {
      const id = method === 'GET' ? polledId(url ?? '') : undefined;
      return id === undefined ? undefined : polledReads.cached(id);
    },
    /** Undefined if the app answers. */
    answer(
      { id, accountId, body, etag }: PreparedReply,
      authorization: string | undefined,
      ifNoneMatch: string | undefined,
    ): PolledReadAnswer | undefined {
      if (authenticator.remembered(authorization)?.accountId !== accountId || !rateLimits.admitsPoll(id))
        return undefined;
      metrics.countPolledRead();
      const headers = ['X-Request-Id', nextId(), 'ETag', etag, 'Cache-Control', PRIVATE];
      if (isNoneMatch(ifNoneMatch, etag)) return { status: 304, headers, body: undefined };
      headers.push('Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body)));
      return { status: 200, headers, body };
    },
  };
}

/**
 * The listener for node:http. Polled reads are answered directly, except for ambiguous ones, such as two credentials in
 * one request.
 */
export function createListener(
  app: OpenAPIHono<HttpEnv>,
  polls: PolledReadAnswers,
  { log, nextId, trustedProxies }: Pick<HttpDeps, 'log' | 'trustedProxies'> & { nextId: () => string },
): RequestListener {
  const throughApp = appListener(app.fetch, { errors, log, nextId, trustedProxies });
  return (request, response) => {
    const { headers, rawHeaders } = request;
    const reply = polls.find(request.method, request.url);
    const isPlain =
      reply !== undefined &&
      countHeader(rawHeaders, 'host') === 1 &&
      countHeader(rawHeaders, 'authorization') === 1 &&
      headers['x-request-id'] === undefined;
    const answer = isPlain ? polls.answer(reply, headers.authorization, headers['if-none-match']) : undefined;
    if (answer === undefined) return throughApp(request, response);
    response.writeHead(answer.status, answer.headers);
    response.end(answer.body);
  };
}

function polledId(url: string): string | undefined {
  if (!url.startsWith(PREFIX)) return undefined;
  const end = url.indexOf('?');
  const id = end === -1 ? url.slice(PREFIX.length) : url.slice(PREFIX.length, end);
  return id.includes('/') ? undefined : id;
}
