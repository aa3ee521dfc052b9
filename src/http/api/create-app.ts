import { OpenAPIHono } from '@hono/zod-openapi';
import type { MiddlewareHandler, NotFoundHandler } from 'hono';
import { ZodError } from 'zod';
import type { Log } from '../../ports/log.ts';
import { EXPECTED_PLAIN_TEXT, pathsOfUnplainText } from '../../ports/plain-text.ts';
import type { ApiErrors } from './errors.ts';
import { type FindProblem, openRoutes } from './operations.ts';
import type { RequestEnv } from './request-context.ts';

/** The parts of a server, besides its routes. */
export interface AppParts<E extends RequestEnv> {
  title: string;
  /** Prefix of every path of the API. */
  api: string;
  /** The path at which `routes` is mounted. */
  mountAt: string;
  routes: OpenAPIHono<E>;
  /** Builds the OpenAPI document of the routes. It runs on first use, because it would delay startup. */
  document: () => { paths?: Record<string, object> };
  requestContext: MiddlewareHandler<E>;
  errors: ApiErrors<string>;
  log: Log;
  findProblem: FindProblem;
}

/** Assembles the HTTP side of a server. Also answers in process, through `app.request()`. */
export function assembleApp<E extends RequestEnv>({
  title,
  api,
  mountAt,
  routes,
  document,
  requestContext,
  errors,
  log,
  findProblem,
}: AppParts<E>): OpenAPIHono<E> {
  const app = new OpenAPIHono<E>();
  app.use(requestContext);
  app.route('/', openRoutes<E>({ title, api, document, findProblem }));
  app.route(mountAt, routes);
  app.onError((error, context) => errors.respond(context, error, log));
  app.notFound(
    noRoute({ document, prefix: mountAt === '/' ? '' : mountAt, description: '/openapi.json', errors, log }),
  );
  return app;
}

/** Answers a request that no route takes: 405 if its path has other methods in the document, else 404. */
export function noRoute<E extends RequestEnv>({
  document,
  prefix,
  description,
  errors,
  log,
}: {
  document: AppParts<E>['document'];
  /** The base path of the document's paths. */
  prefix: string;
  /** The path that describes the API. */
  description: string;
  errors: ApiErrors<string>;
  log: Log;
}): NotFoundHandler<E> {
  let allowed: AllowedMethods | undefined;
  return (context) => {
    const { method, path } = context.req;
    allowed ??= new AllowedMethods(document(), prefix);
    const methods = allowed.of(path);
    if (methods.length === 0) {
      const sentence = `There is no ${method} ${path.slice(0, 100)}; the API is described at ${description}.`;
      return errors.respond(context, errors.notFound(sentence), log);
    }
    context.header('Allow', methods.join(', '));
    return errors.respond(context, errors.methodNotAllowed(methods), log);
  };
}

/**
 * Creates a router whose routes are the single source of the OpenAPI document. `invalid` creates the error for invalid
 * input. No text of a request's input has a NUL or half a surrogate pair, except under the keys in `verbatim`.
 */
export function newRouter<E extends RequestEnv>(
  invalid: (failed: { error: ZodError }) => Error,
  verbatim: readonly PropertyKey[] = [],
): OpenAPIHono<E> {
  return new OpenAPIHono<E>({
    defaultHook: (result) => {
      const failure = failureOf(result, verbatim);
      if (failure !== undefined) throw invalid(failure);
    },
  });
}

/** Returns why an input is invalid, texts that are not plain included. Undefined if it is valid. For a route's own hook. */
export function failureOf(
  result: { success: true; data: unknown } | { success: false; error: ZodError },
  verbatim: readonly PropertyKey[] = [],
): { error: ZodError } | undefined {
  if (!result.success) return result;
  const issues = pathsOfUnplainText(result.data)
    .filter((path) => !verbatim.includes(path.at(-1) ?? ''))
    .map((path) => ({ code: 'custom', path, message: EXPECTED_PLAIN_TEXT, input: undefined }) as const);
  return issues.length === 0 ? undefined : { error: new ZodError(issues) };
}

/** A body of JSON, with an optional example. */
export function jsonContent<Schema>(schema: Schema, example?: object) {
  return { 'application/json': { schema, ...(example !== undefined && { example }) } };
}

/** The security of a route that needs a credential. */
export const bearer = [{ bearer: [] }];

/** The parts of an OpenAPI document that both servers share. */
export function describeRoutes<E extends RequestEnv>(
  routes: OpenAPIHono<E>,
  {
    credential,
    url,
    tags,
    ...info
  }: {
    title: string;
    version: string;
    description: string;
    /** Description of the bearer token. */
    credential: string;
    /** Base URL of the paths. */
    url: string;
    tags: { name: string; description: string }[];
  },
): ReturnType<OpenAPIHono<E>['getOpenAPI31Document']> {
  routes.openAPIRegistry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    description: credential,
  });
  return routes.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      ...info,
      contact: { name: 'The operator of this server' },
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url }],
    tags,
  });
}

/** The methods of each path of an OpenAPI document. */
class AllowedMethods {
  readonly #paths: { pattern: RegExp; methods: string[] }[];

  /** `prefix` is the base path of the document's paths. */
  constructor({ paths = {} }: { paths?: Record<string, object> }, prefix: string) {
    this.#paths = Object.entries(paths).map(([path, operations]) => ({
      pattern: new RegExp(`^${prefix}${path.replace(/\{[^}]+\}/g, '[^/]+')}$`),
      methods: Object.keys(operations).flatMap((method) =>
        method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()],
      ),
    }));
  }

  /** Returns the methods of a path. Empty if there is no such path. */
  of(path: string): string[] {
    return [
      ...new Set(this.#paths.filter(({ pattern }) => pattern.test(path)).flatMap((entry) => entry.methods)),
    ];
  }
}
