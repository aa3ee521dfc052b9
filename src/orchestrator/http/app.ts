import type { RequestListener } from 'node:http';
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import { readBody } from '../../http/api/body.ts';
import { assembleApp } from '../../http/api/create-app.ts';
import { appListener } from '../../http/api/listener.ts';
import type { FindProblem } from '../../http/api/operations.ts';
import { requestContext } from '../../http/api/request-context.ts';
import type { Log } from '../../ports/log.ts';
import type { Authenticator } from '../accounts/authenticate.ts';
import { conditionalReads } from './conditional.ts';
import type { HttpDeps, HttpEnv } from './deps.ts';
import { createRouter, errors } from './errors.ts';
import { openApiDocument } from './openapi.ts';
import { type PolledRouteDeps, polledRoute } from './polled-route.ts';
import { authRoutes } from './routes/auth.ts';
import { extensionRoutes } from './routes/extensions.ts';
import { instanceRoutes } from './routes/instances.ts';
import { offerRoutes } from './routes/offers.ts';
import { volumeRoutes } from './routes/volumes.ts';
import { nameOf, namingRefused } from './who.ts';

/** The whole HTTP application. Also answers in process, through `app.request()`. */
export function createApp(
  deps: HttpDeps,
  { nextId, findProblem, hasDocs }: { nextId: () => string; findProblem: FindProblem; hasDocs: boolean },
): OpenAPIHono<HttpEnv> {
  const v1 = createV1(deps);
  return assembleApp({
    title: 'Provider Orchestrator API',
    api: '/v1',
    mountAt: '/v1',
    routes: v1,
    document: () => openApiDocument(v1),
    requestContext: requestContext<HttpEnv>({ ...deps, nextId }),
    errors,
    log: deps.log,
    findProblem,
    hasDocs,
  });
}

function createV1(deps: HttpDeps): OpenAPIHono<HttpEnv> {
  const { authenticator, rateLimits, maxBodyBytes } = deps;
  const v1 = createRouter();
  const authenticate = authentication(authenticator);
  v1.use(authenticate);
  v1.use(async (context, next) => {
    const { method, path } = context.req;
    const isPolledRead = (method === 'GET' || method === 'HEAD') && /^\/v1\/instances\/[^/]+$/.test(path);
    const principal = context.get('principal') as HttpEnv['Variables']['principal'] | undefined;
    if (principal !== undefined && !isPolledRead) rateLimits.admitRequest(principal.accountId);
    return next();
  });
  v1.use(conditionalReads());
  v1.use(readBody(maxBodyBytes, errors.body));
  // A body may take long to arrive, and its key may be revoked meanwhile.
  v1.use(authenticate);
  v1.route('/', authRoutes(deps));
  v1.route('/', offerRoutes(deps));
  v1.route('/', instanceRoutes(deps));
  v1.route('/', volumeRoutes(deps));
  v1.route('/', extensionRoutes(deps));
  return v1;
}

/** O: Endpoints: "Every endpoint except POST /auth/token requires the bearer credential." */
function authentication(authenticator: Authenticator): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    if (context.req.path === '/v1/auth/token') return next();
    const authorization = context.req.header('authorization');
    const principal =
      authenticator.remembered(authorization) ??
      (await namingRefused(context, authenticator.authenticate(authorization)));
    context.set('principal', principal);
    context.set('who', nameOf(principal));
    return next();
  };
}

/** The listener for node:http: answers the polled read itself and leaves the rest to the app. */
export function createListener(
  app: OpenAPIHono<HttpEnv>,
  { log, trustedProxies, ...deps }: PolledRouteDeps & { log: Log; trustedProxies: number },
): RequestListener {
  return polledRoute(deps, appListener(app.fetch, { errors, log, nextId: deps.nextId, trustedProxies }));
}
