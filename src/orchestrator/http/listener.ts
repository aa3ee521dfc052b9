import type { RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { OpenAPIHono } from '@hono/zod-openapi';
import { ApiError, invalidRequest } from '../../contract/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { HttpEnv } from './deps.ts';
import { logFailure, toApiError } from './error-responses.ts';
import { type PolledRouteDeps, polledRoute } from './polled-route.ts';

/** `.` and `..` between slashes, also percent-encoded: a URL parser would resolve them to another path. */
const DOT_SEGMENT = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i;

/**
 * What node:http calls: the polled read first, the app for the rest. What is no request to the app (no Host, a
 * target that is no path, a path that climbs) gets the envelope here.
 */
export function createListener(
  app: OpenAPIHono<HttpEnv>,
  { log, ...deps }: PolledRouteDeps & { log: Log },
): RequestListener {
  const respond = (error: ApiError): Response => {
    const requestId = deps.nextId();
    const { status, code } = error;
    if (status >= 500) logFailure(log, error, { requestId, status });
    else log.info({ requestId, status, code }, 'request refused');
    return Response.json(error.toBody(), {
      status: error.status,
      headers: { 'X-Request-Id': requestId, 'Cache-Control': 'no-store' },
    });
  };
  const throughApp = getRequestListener(app.fetch, {
    errorHandler: (error) => respond(isNoRequest(error) ? noRequest(error) : toApiError(error)),
  });
  const refuseClimbing = getRequestListener(() =>
    respond(new ApiError('not_found', 'There is no such path.')),
  );
  return polledRoute(deps, (request, response) =>
    DOT_SEGMENT.test(request.url ?? '') ? refuseClimbing(request, response) : throughApp(request, response),
  );
}

/** Whether node-server could make no request of what came. */
function isNoRequest(error: unknown): error is Error {
  return error instanceof Error && error.name === 'RequestError';
}

function noRequest({ message }: Error): ApiError {
  const expected = message.includes('host')
    ? 'expected one valid Host header'
    : 'expected a valid request target';
  return invalidRequest([{ path: '', message: expected }]);
}
