import type { RequestListener } from 'node:http';
import type { OpenAPIHono } from '@hono/zod-openapi';
import { ApiError, invalidRequest } from '../../contract/errors.ts';
import { appListener } from '../../http/app-listener.ts';
import type { Log } from '../../ports/log.ts';
import type { HttpEnv } from './deps.ts';
import { logFailure, toApiError } from './error-responses.ts';
import { type PolledRouteDeps, polledRoute } from './polled-route.ts';

/** What node:http calls: the polled read first, the app for the rest. What is no request to the app gets the envelope here. */
export function createListener(
  app: OpenAPIHono<HttpEnv>,
  { log, ...deps }: PolledRouteDeps & { log: Log },
): RequestListener {
  const respond = (error: ApiError): Response => {
    const requestId = deps.nextId();
    const { status, code } = error;
    if (status >= 500) logFailure(log, error, { request_id: requestId, status });
    else log.info({ request_id: requestId, status, code }, 'request refused');
    return Response.json(error.toBody(), {
      status: error.status,
      headers: { 'X-Request-Id': requestId, 'Cache-Control': 'no-store' },
    });
  };
  return polledRoute(
    deps,
    appListener(app.fetch, {
      noRequest: (expected) => respond(invalidRequest([{ path: '', message: expected }])),
      noPath: () => respond(new ApiError('not_found', 'There is no such path.')),
      failed: (error) => respond(toApiError(error)),
    }),
  );
}
