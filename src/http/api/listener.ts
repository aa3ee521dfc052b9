import type { RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { Log } from '../../ports/log.ts';
import { countHeader } from '../wire/client-address.ts';
import type { ApiErrors, HttpError } from './errors.ts';

/** `.` and `..` between slashes, also percent-encoded: a URL parser would resolve them to another path. */
const DOT_SEGMENT = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i;

const ONE_HOST = 'expected one valid Host header';

/**
 * What node:http calls: the app, but for what is no request to it (no Host, a target that is no path, a path that
 * climbs). That is answered here, with the same errors.
 */
export function appListener(
  fetch: Parameters<typeof getRequestListener>[0],
  { errors, log, nextId }: { errors: ApiErrors<string>; log: Log; nextId: () => string },
): RequestListener {
  const respond = (error: HttpError): Response => {
    const requestId = nextId();
    const { status, code } = error;
    if (status >= 500) errors.log(log, error, { request_id: requestId, status });
    else log.info({ request_id: requestId, status, code }, 'request refused');
    return Response.json(error.toBody(), {
      status,
      headers: { 'X-Request-Id': requestId, 'Cache-Control': 'no-store' },
    });
  };
  const throughApp = getRequestListener(fetch, {
    errorHandler: (error) =>
      respond(isNoRequest(error) ? errors.malformed(expectedOf(error)) : errors.from(error)),
  });
  const refuseClimbing = getRequestListener(() => respond(errors.notFound('There is no such path.')));
  const refuseHost = getRequestListener(() => respond(errors.malformed(ONE_HOST)));
  return (request, response) => {
    if (countHeader(request.rawHeaders, 'host') > 1) return refuseHost(request, response);
    return DOT_SEGMENT.test(request.url ?? '')
      ? refuseClimbing(request, response)
      : throughApp(request, response);
  };
}

/** Whether node-server could make no request of what came. */
function isNoRequest(error: unknown): error is Error {
  return error instanceof Error && error.name === 'RequestError';
}

function expectedOf({ message }: Error): string {
  return message.includes('host') ? ONE_HOST : 'expected a valid request target';
}
