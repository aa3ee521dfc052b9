import type { RequestListener } from 'node:http';
import type { OpenAPIHono } from '@hono/zod-openapi';
import { readBody } from '../../http/api/body.ts';
import { assembleApp } from '../../http/api/create-app.ts';
import { appListener } from '../../http/api/listener.ts';
import type { FindProblem } from '../../http/api/operations.ts';
import { requestContext } from '../../http/api/request-context.ts';
import { clientOf } from '../../http/wire/client-address.ts';
import type { Log } from '../../ports/log.ts';
import { admission, setRateLimitHeaders, stillAdmitted } from './authentication.ts';
import { corsFor } from './cors.ts';
import type { HttpDeps, HttpEnv } from './deps.ts';
import { createRouter, errors } from './errors.ts';
import { openApiDocument } from './openapi.ts';
import { type RateLimits, rateLimitHeaders } from './rate-limits.ts';
import { configRoutes } from './routes/config.ts';
import { deploymentRoutes } from './routes/deployments.ts';
import { lifecycleRoutes } from './routes/lifecycle.ts';
import { offerRoutes } from './routes/offers.ts';
import { sshKeyRoutes } from './routes/ssh-keys.ts';
import { teamRoutes } from './routes/teams.ts';
import { volumeRoutes } from './routes/volumes.ts';

/** The whole HTTP API. It also answers in process, through `app.request()`. */
export function createApp(
  deps: HttpDeps,
  { nextId, findProblem }: { nextId: () => string; findProblem: FindProblem },
): OpenAPIHono<HttpEnv> {
  const api = createApi(deps);
  const { log, rateLimits } = deps;
  return assembleApp({
    title: 'Marketplace REST API',
    api: '/api',
    mountAt: '/',
    routes: api,
    document: () => openApiDocument(api),
    requestContext: requestContext<HttpEnv>({ ...deps, nextId }, (context, network) =>
      setRateLimitHeaders(context, rateLimits.peek('other', network)),
    ),
    errors,
    log,
    findProblem,
  });
}

function createApi(deps: HttpDeps): OpenAPIHono<HttpEnv> {
  const api = createRouter();
  const { corsOrigins } = deps;
  if (corsOrigins.length > 0) api.use('/api/*', corsFor(corsOrigins));
  api.use('/api/*', admission(deps));
  api.use('/api/*', readBody(errors.body));
  api.use('/api/*', stillAdmitted(deps));
  const all = [
    offerRoutes,
    configRoutes,
    deploymentRoutes,
    lifecycleRoutes,
    sshKeyRoutes,
    volumeRoutes,
    teamRoutes,
  ];
  for (const routesOf of all) api.route('/', routesOf(deps).router);
  return api;
}

interface ListenerDeps {
  log: Log;
  rateLimits: RateLimits;
  nextId: () => string;
  trustedProxies: number;
}

/** Every reply has the rate-limit headers, even if the request never reaches the app (M: Limits). */
export function createListener(
  app: OpenAPIHono<HttpEnv>,
  { log, rateLimits, nextId, trustedProxies }: ListenerDeps,
): RequestListener {
  const listener = appListener(app.fetch, { errors, log, nextId, trustedProxies });
  return (request, response) => {
    const { network } = clientOf(request.socket.remoteAddress, undefined, 0);
    const headers = rateLimitHeaders(rateLimits.peek('other', network));
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    return listener(request, response);
  };
}
