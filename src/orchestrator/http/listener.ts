import type { RequestListener } from 'node:http';
import type { OpenAPIHono } from '@hono/zod-openapi';
import { appListener } from '../../http/api/listener.ts';
import { countHeader } from '../../http/wire/client-address.ts';
import { isNoneMatch, PRIVATE } from './conditional.ts';
import type { HttpDeps, HttpEnv } from './deps.ts';
import { errors } from './errors.ts';

type Deps = Pick<
  HttpDeps,
  'authenticator' | 'polledReads' | 'rateLimits' | 'metrics' | 'log' | 'trustedProxies'
> & { nextId: () => string };

const PREFIX = '/v1/instances/';

/**
 * The listener for node:http. Answers `GET /v1/instances/{id}` directly from the prepared body (O: Instances, rule 2) if
 * the credential was checked within two seconds, the instance is this account's, and it is not polled too often. The app
 * gets all other requests, including refusals and ambiguous ones, such as two credentials in one request.
 */
export function createListener(
  app: OpenAPIHono<HttpEnv>,
  { authenticator, polledReads, rateLimits, metrics, log, nextId, trustedProxies }: Deps,
): RequestListener {
  const throughApp = appListener(app.fetch, { errors, log, nextId, trustedProxies });
  return (request, response) => {
    const { headers } = request;
    const id = request.method === 'GET' ? polledId(request.url ?? '') : undefined;
    const reply = id === undefined ? undefined : polledReads.cached(id);
    if (id === undefined || reply === undefined) return throughApp(request, response);
    if (countHeader(request.rawHeaders, 'host') !== 1 || headers['x-request-id'] !== undefined)
      return throughApp(request, response);
    if (
      authenticator.remembered(headers.authorization)?.accountId !== reply.accountId ||
      countHeader(request.rawHeaders, 'authorization') !== 1 ||
      !rateLimits.admitsPoll(reply.id)
    )
      return throughApp(request, response);

    metrics.countPolledRead();
    const { body, etag } = reply;
    if (isNoneMatch(headers['if-none-match'], etag)) {
      response.writeHead(304, ['X-Request-Id', nextId(), 'ETag', etag, 'Cache-Control', PRIVATE]);
      response.end();
      return;
    }
    response.writeHead(200, [
      ...['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(body))],
      ...['X-Request-Id', nextId(), 'ETag', etag, 'Cache-Control', PRIVATE],
    ]);
    response.end(body);
  };
}

function polledId(url: string): string | undefined {
  if (!url.startsWith(PREFIX)) return undefined;
  const end = url.indexOf('?');
  const id = end === -1 ? url.slice(PREFIX.length) : url.slice(PREFIX.length, end);
  return id.includes('/') ? undefined : id;
}
