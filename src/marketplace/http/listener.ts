import type { RequestListener } from 'node:http';
import type { OpenAPIHono } from '@hono/zod-openapi';
import { appListener } from '../../http/api/listener.ts';
import { clientAddress } from '../../http/wire/client-address.ts';
import type { Log } from '../../ports/log.ts';
import type { HttpEnv } from './deps.ts';
import { errors } from './errors.ts';
import { type RateLimits, rateLimitHeaders } from './rate-limits.ts';

/** What node:http calls: every reply carries the rate-limit headers, also to what is no request to the app (M: Limits). */
export function createListener(
  app: OpenAPIHono<HttpEnv>,
  { log, rateLimits, nextId }: { log: Log; rateLimits: RateLimits; nextId: () => string },
): RequestListener {
  const listener = appListener(app.fetch, { errors, log, nextId });
  return (request, response) => {
    const address = clientAddress(request.socket.remoteAddress, undefined, 0);
    const headers = rateLimitHeaders(rateLimits.peek('other', address));
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    return listener(request, response);
  };
}
