import type { OpenAPIHono } from '@hono/zod-openapi';
import { readBody } from '../../http/api/body.ts';
import { assembleApp, describeRoutes } from '../../http/api/create-app.ts';
import type { FindProblem } from '../../http/api/operations.ts';
import { requestContext } from '../../http/api/request-context.ts';
import { authentication } from './authentication.ts';
import { conditionalReads } from './conditional.ts';
import type { HttpDeps, HttpEnv } from './deps.ts';
import { createRouter, errors } from './errors.ts';
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
  v1.route('/', authRoutes(deps));
  v1.route('/', offerRoutes(deps));
  v1.route('/', instanceRoutes(deps));
  v1.route('/', volumeRoutes(deps));
  v1.route('/', extensionRoutes(deps));
  return v1;
}

/** The contract's own version label (O: Versioning). */
const CONTRACT_VERSION = '1.0.0';

let known: ReturnType<typeof describe> | undefined;

/**
 * The OpenAPI document of the routes. It is made once, since all servers of a process have the same.
 * `openapi/orchestrator.v1.json` is a committed copy.
 */
function openApiDocument(v1: OpenAPIHono<HttpEnv>) {
  known ??= describe(v1);
  return known;
}

function describe(routes: OpenAPIHono<HttpEnv>) {
  const document = describeRoutes(routes, {
    title: 'Provider Orchestrator API',
    version: CONTRACT_VERSION,
    description:
      'The HTTP API that a compute provider exposes so that a marketplace can list its offers, provision instances and manage them. Poll based: the client polls GET /instances/{instanceId} every 10 to 30 seconds for each active instance.',
    credential: 'A long-lived API key, or an access token of POST /auth/token.',
    url: '/v1',
    tags: [
      { name: 'Authentication', description: 'Short-lived tokens, for clients that send no long-lived key.' },
      { name: 'Offers', description: 'The catalog, and what can be deployed now.' },
      { name: 'Instances', description: 'Machines: create, poll, stop, start and destroy them.' },
      { name: 'Volumes', description: 'Network volumes: create, attach, detach and delete them.' },
      {
        name: 'Beyond the contract',
        description:
          'Extensions of this server, announced in `extras.berth` of each offer. Clients of the contract do not need them.',
      },
    ],
  });
  for (const { get } of Object.values(document.paths ?? {}))
    if (get?.responses !== undefined)
      get.responses[304] = { description: 'Unchanged: the client has it already, as `If-None-Match` says.' };
  return document;
}
