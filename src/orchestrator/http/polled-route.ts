import type { RequestListener } from 'node:http';
import { countHeader } from '../../http/wire/client-address.ts';
import type { Authenticator } from '../accounts/authenticate.ts';
import type { PolledReads } from '../instances/polled-reads.ts';
import { isNoneMatch, PRIVATE } from './conditional.ts';
import type { Metrics } from './metrics.ts';
import type { RateLimits } from './rate-limits.ts';

export interface PolledRouteDeps {
  authenticator: Authenticator;
  polledReads: PolledReads;
  rateLimits: RateLimits;
  metrics: Metrics;
  nextId: () => string;
}

const PREFIX = '/v1/instances/';

/**
 * Answers `GET /v1/instances/{id}` directly from the prepared body (O: Instances, rule 2) if the credential was checked
 * within two seconds, the instance is this account's, and it is not polled too often. `otherwise` gets all other
 * requests, including refusals and ambiguous ones, such as two credentials in one request.
 */
export function polledRoute(
  { authenticator, polledReads, rateLimits, metrics, nextId }: PolledRouteDeps,
  otherwise: RequestListener,
): RequestListener {
  return (request, response) => {
    const { headers } = request;
    const id = request.method === 'GET' ? polledId(request.url ?? '') : undefined;
    const reply = id === undefined ? undefined : polledReads.cached(id);
    if (id === undefined || reply === undefined) return otherwise(request, response);
    if (countHeader(request.rawHeaders, 'host') !== 1 || headers['x-request-id'] !== undefined)
      return otherwise(request, response);
    if (
      authenticator.remembered(headers.authorization)?.accountId !== reply.accountId ||
      countHeader(request.rawHeaders, 'authorization') !== 1 ||
      !rateLimits.admitsPoll(reply.id)
    )
      return otherwise(request, response);

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
