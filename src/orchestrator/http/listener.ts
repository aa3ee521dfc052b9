import type { RequestListener } from 'node:http';
import type { OpenAPIHono } from '@hono/zod-openapi';
import { appListener } from '../../http/api/listener.ts';
import type { Log } from '../../ports/log.ts';
import type { HttpEnv } from './deps.ts';
import { errors } from './errors.ts';
import { type PolledRouteDeps, polledRoute } from './polled-route.ts';

/** What node:http calls: the polled read first, the app for the rest. */
export function createListener(
  app: OpenAPIHono<HttpEnv>,
  { log, ...deps }: PolledRouteDeps & { log: Log },
): RequestListener {
  return polledRoute(deps, appListener(app.fetch, { errors, log, nextId: deps.nextId }));
}
