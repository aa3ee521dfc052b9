import type { RequestListener } from 'node:http';
import type { OpenAPIHono } from '@hono/zod-openapi';
import { appListener } from '../../http/app-listener.ts';
import { clientAddress } from '../../http/client-address.ts';
import type { Log } from '../../ports/log.ts';
import { ApiError, invalidRequest } from '../contract/errors.ts';
import type { HttpEnv } from './deps.ts';
import { logFailure, toApiError } from './error-responses.ts';
import { type RateLimits, rateLimitHeaders } from './rate-limits.ts';

/** What node:http calls. What is no request to the app is answered here, with the same body and headers (M: Errors, Limits). */
export function createListener(
  app: OpenAPIHono<HttpEnv>,
  { log, rateLimits, nextId }: { log: Log; rateLimits: RateLimits; nextId: () => string },
): RequestListener {
  const respond = (error: ApiError): Response => {
    const requestId = nextId();
    const { status, code } = error;
    if (status >= 500) logFailure(log, error, { request_id: requestId, status });
    else log.info({ request_id: requestId, status, code }, 'request refused');
    return Response.json(error.toBody(), {
      status,
      headers: { 'X-Request-Id': requestId, 'Cache-Control': 'no-store' },
    });
  };
  const listener = appListener(app.fetch, {
    noRequest: (expected) => respond(invalidRequest([{ path: '', message: expected }])),
    noPath: () => respond(new ApiError('NOT_FOUND', 'There is no such path.')),
    failed: (error) => respond(toApiError(error)),
  });
  return (request, response) => {
    const address = clientAddress(request.socket.remoteAddress, undefined, 0);
    const headers = rateLimitHeaders(rateLimits.peek('other', address));
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    return listener(request, response);
  };
}
