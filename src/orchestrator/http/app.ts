import type { OpenAPIHono } from '@hono/zod-openapi';
import { readBody } from '../../http/api/body.ts';
import { assembleApp } from '../../http/api/create-app.ts';
import type { FindProblem } from '../../http/api/operations.ts';
import { requestContext } from '../../http/api/request-context.ts';
import { authentication, stillAuthenticated } from './authentication.ts';
import { conditionalReads } from './conditional.ts';
import type { HttpDeps, HttpEnv } from './deps.ts';
import { createRouter, errors } from './errors.ts';
import { openApiDocument } from './openapi.ts';
import { authRoutes } from './routes/auth.ts';
import { extensionRoutes } from './routes/extensions.ts';
import { instanceRoutes } from './routes/instances.ts';
import { offerRoutes } from './routes/offers.ts';
import { volumeRoutes } from './routes/volumes.ts';

/** The whole HTTP application. Also answers in process, through `app.request()`. */
export function createApp(
  deps: HttpDeps,
  { nextId, findProblem }: { nextId: () => string; findProblem: FindProblem },
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
  });
}

function createV1(deps: HttpDeps): OpenAPIHono<HttpEnv> {
  const { authenticator, rateLimits } = deps;
  const v1 = createRouter();
  v1.use(authentication(authenticator));
  v1.use(async (context, next) => {
    const { method, path } = context.req;
    const isPolledRead = (method === 'GET' || method === 'HEAD') && /^\/v1\/instances\/[^/]+$/.test(path);
    const principal = context.get('principal') as HttpEnv['Variables']['principal'] | undefined;
    if (principal !== undefined && !isPolledRead) rateLimits.admitRequest(principal.accountId);
    return next();
  });
  v1.use(conditionalReads());
  v1.use(readBody(errors.body));
  v1.use(stillAuthenticated(authenticator));
  v1.route('/', authRoutes(deps));
  v1.route('/', offerRoutes(deps));
  v1.route('/', instanceRoutes(deps));
  v1.route('/', volumeRoutes(deps));
  v1.route('/', extensionRoutes(deps));
  return v1;
}
