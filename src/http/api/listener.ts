import type { IncomingMessage, RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { Log } from '../../ports/log.ts';
import { clientOf, countHeader } from '../wire/client-address.ts';
import type { ApiErrors, HttpError } from './errors.ts';
import { NO_HOST, ONE_HOST } from './known-hosts.ts';

/** `.` and `..` between slashes, also percent-encoded. A URL parser would resolve them to another path. */
const DOT_SEGMENT = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i;

interface ListenerParts {
  errors: ApiErrors<string>;
  log: Log;
  nextId: () => string;
  trustedProxies: number;
}

/**
 * The request listener for node:http. It passes valid requests to the app. It answers others itself, with the same
 * errors: no Host, which only HTTP/1.0 may omit, an invalid target, or a path with `.` or `..`.
 */
export function appListener(
  fetch: Parameters<typeof getRequestListener>[0],
  { errors, log, nextId, trustedProxies }: ListenerParts,
): RequestListener {
  /** The current request. node-server calls its error handler synchronously if it cannot parse the request. */
  let current: IncomingMessage | undefined;
  const respond = (error: HttpError, request?: IncomingMessage): Response => {
    const requestId = nextId();
    const { status, code } = error;
    const line = { request_id: requestId, status, ...(request && addressOf(request, trustedProxies)) };
    if (status >= 500) errors.log(log, error, line);
    else log.info({ ...line, code }, 'request refused');
    return Response.json(error.toBody(), {
      status,
      headers: { 'X-Request-Id': requestId, 'Cache-Control': 'no-store' },
    });
  };
  const options = {
    hostname: NO_HOST,
    // A refused body is discarded, and the connection continues: here by Node, and by readBody what it has begun to read.
    autoCleanupIncoming: false,
    errorHandler: (error: unknown) =>
      isNoRequest(error)
        ? respond(errors.malformed(expectedOf(error)), current)
        : respond(errors.from(error)),
  };
  const throughApp = getRequestListener(fetch, options);
  const refuseClimbing = getRequestListener(
    () => respond(errors.notFound('There is no such path.'), current),
    options,
  );
  const refuseHost = getRequestListener(() => respond(errors.malformed(ONE_HOST), current), options);
  return (request, response) => {
    current = request;
    if (!hasHost(request)) return refuseHost(request, response);
    return DOT_SEGMENT.test(request.url ?? '')
      ? refuseClimbing(request, response)
      : throughApp(request, response);
  };
}

/** Health checks of load balancers are requests of HTTP/1.0, which need no Host. */
function hasHost({ rawHeaders, headers, httpVersion }: IncomingMessage): boolean {
  if (headers.host === undefined) return httpVersion === '1.0';
  return headers.host !== '' && countHeader(rawHeaders, 'host') === 1;
}

function addressOf({ headers, socket }: IncomingMessage, trustedProxies: number): { address: string } {
  const forwarded = headers['x-forwarded-for'];
  const text = Array.isArray(forwarded) ? forwarded.join() : forwarded;
  return { address: clientOf(socket.remoteAddress, text, trustedProxies).address };
}

/** Whether node-server could not parse the request. */
function isNoRequest(error: unknown): error is Error {
  return error instanceof Error && error.name === 'RequestError';
}

function expectedOf({ message }: Error): string {
  return message.includes('host') ? ONE_HOST : 'expected a valid request target';
}
