import type { MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { HttpEnv } from './deps.ts';
import type { Metrics } from './metrics.ts';

const ACCEPTED_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** Gives each request an id, which its reply carries, and writes one line for it to the log. Reads that succeed are at debug. */
export function requestContext({
  log,
  clock,
  metrics,
  nextId,
}: {
  log: Log;
  clock: Clock;
  metrics: Metrics;
  nextId: () => string;
}): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    const given = context.req.header('x-request-id');
    const requestId = given !== undefined && ACCEPTED_ID.test(given) ? given : nextId();
    context.set('requestId', requestId);
    context.header('X-Request-Id', requestId);
    const startedAt = clock.now();
    await next();
    const { method, path } = context.req;
    const { status } = context.res;
    const ms = clock.now() - startedAt;
    const route = routePath(context, -1);
    metrics.countRequest(method, route === '/*' ? 'none' : route, status, ms / 1000);
    const line = { requestId, method, path: path.slice(0, 200), status, ms };
    if (method === 'GET' && status < 400) log.debug(line, 'request');
    else log.info(line, 'request');
  };
}
