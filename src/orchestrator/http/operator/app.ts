import { OpenAPIHono } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import { ApiError } from '../../../contract/errors.ts';
import { readBody } from '../../../http/api/body.ts';
import { describeRoutes } from '../../../http/api/create-app.ts';
import { requestContext } from '../../../http/api/request-context.ts';
import { Fatal } from '../../../ports/errors.ts';
import { ActionRefused } from '../../operate/actions/refused.ts';
import type { Operators } from '../../operate/keys.ts';
import { errors } from '../errors.ts';
import { accountRoutes } from './accounts.ts';
import { actionRoutes } from './actions.ts';
import { createOperatorRouter, type OperatorDeps, type OperatorEnv } from './deps.ts';
import { instanceRoutes } from './instances.ts';
import { lossRoutes } from './losses.ts';
import { viewRoutes } from './views.ts';

/** Where the operator's API begins. */
const API = '/operator/v1';

/** The same for every server of a process, so that it is made once, and only where somebody asks for it. */
let document: ReturnType<typeof describe> | undefined;

/** The operator's API, on the admin listener: it opens with the keys of operators alone. */
export function createOperatorApp(
  deps: OperatorDeps,
  { nextId }: { nextId: () => string },
): OpenAPIHono<OperatorEnv> {
  const { log, operators, maxBodyBytes } = deps;
  const v1 = createOperatorRouter();
  v1.use(authentication(operators));
  v1.use(readBody(maxBodyBytes, errors.body));
  v1.route('/', viewRoutes(deps));
  v1.route('/', instanceRoutes(deps));
  v1.route('/', accountRoutes(deps));
  v1.route('/', actionRoutes(deps));
  v1.route('/', lossRoutes(deps));
  const app = new OpenAPIHono<OperatorEnv>();
  app.use(requestContext<OperatorEnv>({ ...deps, nextId }));
  app.get('/operator/openapi.json', (context) => {
    document ??= describe(v1);
    return context.json(document);
  });
  app.route(API, v1);
  app.onError((error, context) => errors.respond(context, toApiError(error), log));
  app.notFound((context) => {
    const { method, path } = context.req;
    const sentence = `There is no ${method} ${path.slice(0, 100)}; the API is described at /operator/openapi.json.`;
    return errors.respond(context, errors.notFound(sentence), log);
  });
  return app;
}

/** What a use case of the command line refuses, it refuses here too. */
function toApiError(error: Error): Error {
  if (error instanceof ActionRefused) return new ApiError(error.code, error.message);
  return error instanceof Fatal ? new ApiError('invalid_request', error.message) : error;
}

function authentication(operators: Operators): MiddlewareHandler<OperatorEnv> {
  return async (context, next) => {
    context.header('Cache-Control', 'no-store');
    context.set('operator', await operators.authenticate(context.req.header('authorization')));
    return next();
  };
}

function describe(routes: OpenAPIHono<OperatorEnv>) {
  return describeRoutes(routes, {
    title: 'Berth operator API',
    version: '1.0.0',
    description:
      'What an operator of Berth sees and does, on the admin listener. Its keys open no account, and the keys of accounts do not open it.',
    credential: 'The key of an operator: `berth operators create` makes one.',
    url: API,
    tags: [
      { name: 'Views', description: 'What there is, what is done about it, and what stands wrong.' },
      { name: 'Instances', description: 'Instances of all accounts, with their history.' },
      { name: 'Accounts', description: 'Accounts and keys.' },
      { name: 'Actions', description: 'What an operator does: each leaves a row in the audit log.' },
    ],
  });
}
