import type { MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import { clientAddress } from '../../http/client-address.ts';
import { tell } from './authentication.ts';
import type { HttpDeps, HttpEnv } from './deps.ts';

const ACCEPTED_ID = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Gives each request an id and the address that it is counted for, its reply the headers that every one has, and
 * writes one line for it to the log. Reads that succeed are at debug.
 */
export function requestContext({
  log,
  clock,
  metrics,
  rateLimits,
  trustedProxies,
  nextId,
}: Pick<HttpDeps, 'log' | 'clock' | 'metrics' | 'rateLimits' | 'trustedProxies'> & {
  nextId: () => string;
}): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    const given = context.req.header('x-request-id');
    const requestId = given !== undefined && ACCEPTED_ID.test(given) ? given : nextId();
    context.set('requestId', requestId);
    context.header('X-Request-Id', requestId);
    const address = clientAddress(
      context.env?.incoming?.socket.remoteAddress,
      context.req.header('x-forwarded-for'),
      trustedProxies,
    );
    context.set('address', address);
    tell(context, rateLimits.peek('other', address));
    const startedAt = clock.now();
    await next();
    const { method, path } = context.req;
    const { status } = context.res;
    const ms = clock.now() - startedAt;
    const route = routePath(context, -1);
    metrics.countRequest(method, route === '/*' ? 'none' : route, status, ms / 1000);
    const line = {
      request_id: requestId,
      method,
      path: path.slice(0, 200),
      status,
      ms,
      ...context.get('made'),
    };
    if (method === 'GET' && status < 400) log.debug(line, 'request');
    else log.info(line, 'request');
  };
}
