import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { ApiError } from '../../contract/errors.ts';
import { AllowedMethods } from '../../http/allowed-methods.ts';
import { readBody } from '../../http/body.ts';
import { type FindProblem, openRoutes } from '../../http/operations.ts';
import { authentication } from './authentication.ts';
import { conditionalReads } from './conditional.ts';
import type { HttpDeps, HttpEnv } from './deps.ts';
import { respondWithError } from './error-responses.ts';
import { openApiDocument } from './openapi.ts';
import { requestContext } from './request-context.ts';
import { authRoutes } from './routes/auth.ts';
import { extensionRoutes } from './routes/extensions.ts';
import { instanceRoutes } from './routes/instances.ts';
import { offerRoutes } from './routes/offers.ts';
import { createRouter } from './routes/router.ts';
import { volumeRoutes } from './routes/volumes.ts';
import { bodyRefusals } from './wire-errors.ts';

/** The whole HTTP side. Also answers in process, through `app.request()`. */
export function createApp(
  deps: HttpDeps,
  { nextId, findProblem, hasDocs }: { nextId: () => string; findProblem: FindProblem; hasDocs: boolean },
): OpenAPIHono<HttpEnv> {
  const v1 = createV1(deps);
  const document = openApiDocument(v1);
  const app = new OpenAPIHono<HttpEnv>();
  app.use(requestContext({ ...deps, nextId }));
  app.route(
    '/',
    openRoutes({ title: 'Provider Orchestrator API', api: '/v1', document, findProblem, hasDocs }),
  );
  app.route('/v1', v1);
  app.onError((error, context) => respondWithError(context, error, deps.log));
  const allowed = new AllowedMethods(document, '/v1');
  app.notFound((context) => respondWithError(context, noRoute(context, allowed, hasDocs), deps.log));
  return app;
}

function createV1(deps: HttpDeps): OpenAPIHono<HttpEnv> {
  const { authenticator, rateLimits, maxBodyBytes } = deps;
  const v1 = createRouter();
  const authenticate = authentication(authenticator);
  v1.use(async (context, next) =>
    context.req.path === '/v1/auth/token' ? next() : authenticate(context, next),
  );
  v1.use(async (context, next) => {
    const { method, path } = context.req;
    const isPolledRead = (method === 'GET' || method === 'HEAD') && /^\/v1\/instances\/[^/]+$/.test(path);
    const principal = context.get('principal') as HttpEnv['Variables']['principal'] | undefined;
    if (principal !== undefined && !isPolledRead) rateLimits.admitRequest(principal.accountId);
    return next();
  });
  v1.use(conditionalReads());
  v1.use(readBody(maxBodyBytes, bodyRefusals));
  v1.route('/', authRoutes(deps));
  v1.route('/', offerRoutes(deps));
  v1.route('/', instanceRoutes(deps));
  v1.route('/', volumeRoutes(deps));
  v1.route('/', extensionRoutes(deps));
  return v1;
}

function noRoute(context: Context<HttpEnv>, allowed: AllowedMethods, hasDocs: boolean): ApiError {
  const { method, path } = context.req;
  const methods = allowed.of(path);
  if (methods.length === 0)
    return new ApiError(
      'not_found',
      `There is no ${method} ${path.slice(0, 100)}; the API is described at ${hasDocs ? '/docs' : '/openapi.json'}.`,
    );
  context.header('Allow', methods.join(', '));
  return new ApiError('method_not_allowed', `This path answers to ${methods.join(', ')}.`);
}
