import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import type { HttpEnv } from './deps.ts';

const MAX_AGE_S = 600;

/**
 * Lets pages of these origins call the API. A preflight is answered 204 without a credential, and counts for no limit.
 * Replies to other origins only say that they depend on the origin.
 */
export function corsFor(origins: readonly string[]): MiddlewareHandler<HttpEnv> {
  const known = new Set(origins);
  const allow = cors({
    origin: [...origins],
    allowMethods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    allowHeaders: ['Authorization', 'Content-Type', 'Idempotency-Key', 'X-Request-Id'],
    exposeHeaders: [
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'X-RateLimit-Reset',
      'Retry-After',
      'X-Request-Id',
      'Idempotent-Replayed',
    ],
    maxAge: MAX_AGE_S,
  });
  return async (context, next) => {
    if (known.has(context.req.header('origin') ?? '')) return allow(context, next);
    await next();
    context.header('Vary', 'Origin', { append: true });
  };
}
