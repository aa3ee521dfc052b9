import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { createMiddleware } from 'hono/factory';
import { ApiError, type ErrorCode, invalidRequest } from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { readBody } from '../../http/api/body.ts';
import { describeRoutes, newRouter, noRoute } from '../../http/api/create-app.ts';
import type { ApiErrors } from '../../http/api/errors.ts';
import { type RequestEnv, type RequestVariables, requestContext } from '../../http/api/request-context.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Actor, OperatorKeyRecord } from '../model.ts';
import { PRODUCT_HEADER, type Product } from '../product.ts';

type Operator = Pick<OperatorKeyRecord, 'id' | 'name' | 'role'>;

/** Finds out who sends a request. */
export interface Authentication {
  /** @throws {ApiError} `unauthorized` */
  authenticate(authorization: string | undefined, from: Pick<Actor, 'source' | 'address'>): Promise<Operator>;
}

/** Values that middleware sets for the routes. */
export interface OperatorEnv extends RequestEnv {
  Variables: RequestVariables & { operator: Operator };
}

/** Creates a router that answers invalid input with a 400 that names each path. */
export function createOperatorRouter(): OpenAPIHono<OperatorEnv> {
  return newRouter<OperatorEnv>((failed) => invalidRequest(toIssues(failed)));
}

/** The sender of the request, for the audit log. */
export function actorOf(context: Context<OperatorEnv>): Actor {
  const { name, role } = context.get('operator');
  return { name, role, source: 'api', address: context.get('address') };
}

/** Base path of the operator's API of either product, on its admin listener. */
const API = '/operator/v1';

type RequestParts = Parameters<typeof requestContext>[0];

interface OperatorParts extends RequestParts {
  product: Product;
  operators: Authentication;
  errors: ApiErrors<ErrorCode>;
  routes: readonly OpenAPIHono<OperatorEnv>[];
  about: Pick<Parameters<typeof describeRoutes>[1], 'title' | 'description' | 'credential' | 'tags'>;
  /** In a sandbox: where clients reach the API. */
  sandboxUrl?: string | undefined;
  /** The code of a refused use case; default: `invalid_request`. */
  codeOf?: (refused: Fatal) => ErrorCode | undefined;
}

/**
 * Documents by title and URL. A document is the same for every server of a process, and is built on the first request for
 * it.
 */
const documents = new Map<string, object>();

/** Assembles the operator's API of a product. Only operator keys are accepted. */
export function assembleOperatorApp(parts: OperatorParts): OpenAPIHono<OperatorEnv> {
  const { log, operators, errors, routes, codeOf, sandboxUrl } = parts;
  const about = sandboxUrl === undefined ? parts.about : inSandbox(parts.about);
  const url = sandboxUrl ?? API;
  const v1 = createOperatorRouter();
  v1.use((context, next) => {
    assertExpected(parts.product, context.req.header(PRODUCT_HEADER));
    return next();
  });
  const authenticate = createMiddleware<OperatorEnv>(async (context, next) => {
    context.header('Cache-Control', 'no-store');
    const from = { source: 'api', address: context.get('address') } as const;
    const operator = await operators.authenticate(context.req.header('authorization'), from);
    context.set('operator', operator);
    context.set('who', { operator: operator.name, key: operator.id });
    return next();
  });
  v1.use(authenticate);
  v1.use(readBody(errors.body));
  // Receiving a body may take long, and its key may have been revoked meanwhile.
  v1.use((context, next) => (context.req.method === 'POST' ? authenticate(context, next) : next()));
  for (const some of routes) v1.route('/', some);
  const app = new OpenAPIHono<OperatorEnv>();
  app.use(requestContext<OperatorEnv>(parts));
  const document = (): object => {
    const { title, ...rest } = about;
    const key = `${title} ${url}`;
    const built = documents.get(key) ?? describeRoutes(v1, { title, version: '1.0.0', ...rest, url });
    documents.set(key, built);
    return built;
  };
  app.get('/operator/openapi.json', (context) => context.json(document()));
  app.route(API, v1);
  app.onError((error, context) => errors.respond(context, toApiError(error, codeOf), log));
  app.notFound(noRoute({ document, prefix: API, description: '/operator/openapi.json', errors, log }));
  return app;
}

/** Refuses a command that is meant for the other product, before it changes anything. @throws {ApiError} */
function assertExpected(product: Product, expected: string | undefined): void {
  if (expected === undefined || expected === product) return;
  const commands = product === 'marketplace' ? 'berth marketplace …' : 'berth …';
  throw new ApiError(
    'invalid_request',
    `This is the admin listener of ${product === 'marketplace' ? 'a marketplace' : 'an orchestrator'}, not of ${expected === 'marketplace' ? 'a marketplace' : 'an orchestrator'}: use \`${commands}\`, or the URL of the other server.`,
  );
}

function inSandbox(about: OperatorParts['about']): OperatorParts['about'] {
  return {
    ...about,
    title: `${about.title} of a sandbox`,
    description:
      'Views and actions of operators, and what they do on the command line, as part of the control API.',
    credential: 'The key of the control API.',
  };
}

/** Converts a refusal of a use case (`Fatal`) to an `ApiError`. */
function toApiError(error: Error, codeOf: OperatorParts['codeOf']): Error {
  if (!(error instanceof Fatal)) return error;
  return new ApiError(codeOf?.(error) ?? 'invalid_request', error.message);
}
