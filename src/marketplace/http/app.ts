import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { AllowedMethods } from '../../http/allowed-methods.ts';
import { readBody } from '../../http/body.ts';
import { type FindProblem, openRoutes } from '../../http/operations.ts';
import { ApiError } from '../contract/errors.ts';
import { admission } from './authentication.ts';
import type { HttpDeps, HttpEnv } from './deps.ts';
import { respondWithError } from './error-responses.ts';
import { openApiDocument } from './openapi.ts';
import { requestContext } from './request-context.ts';
import { configRoutes } from './routes/config.ts';
import { deploymentRoutes } from './routes/deployments.ts';
import { lifecycleRoutes } from './routes/lifecycle.ts';
import { offerRoutes } from './routes/offers.ts';
import { createRouter } from './routes/router.ts';
import { sshKeyRoutes } from './routes/ssh-keys.ts';
import { teamRoutes } from './routes/teams.ts';
import { volumeActionRoutes } from './routes/volume-actions.ts';
import { volumeRoutes } from './routes/volumes.ts';
import { bodyRefusals } from './wire-errors.ts';

/** The whole HTTP side. Also answers in process, through `app.request()`. */
export function createApp(
  deps: HttpDeps,
  { nextId, findProblem, hasDocs }: { nextId: () => string; findProblem: FindProblem; hasDocs: boolean },
): OpenAPIHono<HttpEnv> {
  const api = createApi(deps);
  const document = openApiDocument(api);
  const app = new OpenAPIHono<HttpEnv>();
  app.use(requestContext({ ...deps, nextId }));
  app.route('/', openRoutes({ title: 'Marketplace REST API', api: '/api', document, findProblem, hasDocs }));
  app.route('/', api);
  app.onError((error, context) => respondWithError(context, error, deps.log));
  const allowed = new AllowedMethods(document);
  app.notFound((context) => respondWithError(context, noRoute(context, allowed, hasDocs), deps.log));
  return app;
}

function createApi(deps: HttpDeps): OpenAPIHono<HttpEnv> {
  const api = createRouter();
  api.use('/api/*', admission(deps));
  api.use('/api/*', readBody(deps.maxBodyBytes, bodyRefusals));
  api.route('/', offerRoutes(deps));
  api.route('/', configRoutes(deps));
  api.route('/', deploymentRoutes(deps));
  api.route('/', lifecycleRoutes(deps));
  api.route('/', sshKeyRoutes(deps));
  api.route('/', volumeRoutes(deps));
  api.route('/', volumeActionRoutes(deps));
  api.route('/', teamRoutes(deps));
  return api;
}

function noRoute(context: Context<HttpEnv>, allowed: AllowedMethods, hasDocs: boolean): ApiError {
  const { method, path } = context.req;
  const methods = allowed.of(path);
  if (methods.length === 0)
    return new ApiError(
      'NOT_FOUND',
      `There is no ${method} ${path.slice(0, 100)}; the API is described at ${hasDocs ? '/docs' : '/openapi.json'}.`,
    );
  context.header('Allow', methods.join(', '));
  return new ApiError('METHOD_NOT_ALLOWED', `This path answers to ${methods.join(', ')}.`);
}
