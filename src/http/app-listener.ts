import type { RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { countHeader } from './count-header.ts';

/** `.` and `..` between slashes, also percent-encoded: a URL parser would resolve them to another path. */
const DOT_SEGMENT = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i;

const ONE_HOST = 'expected one valid Host header';

/** How a server answers what its app never sees. */
export interface AppRefusals {
  /** 400: `expected` says what a request must have. */
  noRequest(expected: string): Response;
  /** 404: the path climbs. */
  noPath(): Response;
  /** The app itself failed. */
  failed(error: unknown): Response;
}

/** What node:http calls: the app, but for what is no request to it (no Host, a target that is no path, a path that climbs). */
export function appListener(
  fetch: Parameters<typeof getRequestListener>[0],
  refusals: AppRefusals,
): RequestListener {
  const throughApp = getRequestListener(fetch, {
    errorHandler: (error) =>
      isNoRequest(error) ? refusals.noRequest(expectedOf(error)) : refusals.failed(error),
  });
  const refuseClimbing = getRequestListener(() => refusals.noPath());
  const refuseHost = getRequestListener(() => refusals.noRequest(ONE_HOST));
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
