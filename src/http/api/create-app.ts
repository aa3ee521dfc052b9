import { OpenAPIHono } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import type { ZodError } from 'zod';
import type { Log } from '../../ports/log.ts';
import type { ApiErrors, HttpError } from './errors.ts';
import { type FindProblem, openRoutes } from './operations.ts';
import type { RequestEnv } from './request-context.ts';

/** What a server is put together from, beside its routes. */
export interface AppParts<E extends RequestEnv> {
  title: string;
  /** What every path of the API begins with. */
  api: string;
  /** Where `routes` begin. */
  mountAt: string;
  routes: OpenAPIHono<E>;
  /** Makes the OpenAPI document of the routes: only where somebody asks for it, since a start is longer by it. */
  document: () => { paths?: Record<string, object> };
  requestContext: MiddlewareHandler<E>;
  errors: ApiErrors<string>;
  log: Log;
  findProblem: FindProblem;
  /** Whether there is a page at /docs. */
  hasDocs: boolean;
}

/** The whole HTTP side of a server. Also answers in process, through `app.request()`. */
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
  hasDocs,
}: AppParts<E>): OpenAPIHono<E> {
  const app = new OpenAPIHono<E>();
  app.use(requestContext);
  app.route('/', openRoutes<E>({ title, api, document, findProblem, hasDocs }));
  app.route(mountAt, routes);
  app.onError((error, context) => errors.respond(context, error, log));
  let allowed: AllowedMethods | undefined;
  app.notFound((context) => {
    const { method, path } = context.req;
    allowed ??= new AllowedMethods(document(), mountAt === '/' ? '' : mountAt);
    const methods = allowed.of(path);
    if (methods.length === 0) return errors.respond(context, noPath(method, path), log);
    context.header('Allow', methods.join(', '));
    return errors.respond(context, errors.methodNotAllowed(methods), log);
  });
  return app;

  function noPath(method: string, path: string): HttpError {
    const description = hasDocs ? '/docs' : '/openapi.json';
    return errors.notFound(
      `There is no ${method} ${path.slice(0, 100)}; the API is described at ${description}.`,
    );
  }
}

/** A router whose routes are the single source of the OpenAPI document; input that does not fit is what `invalid` makes of it. */
export function newRouter<E extends RequestEnv>(
  invalid: (failed: { error: ZodError }) => Error,
): OpenAPIHono<E> {
  return new OpenAPIHono<E>({
    defaultHook: (result) => {
      if (!result.success) throw invalid(result);
    },
  });
}

/** A body of JSON, with an example of it where one helps. */
export function jsonContent<Schema>(schema: Schema, example?: object) {
  return { 'application/json': { schema, ...(example !== undefined && { example }) } };
}

/** The security of a route that needs a credential. */
export const bearer = [{ bearer: [] }];

/** What the documents of both servers say alike. */
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
    /** What the bearer token is. */
    credential: string;
    /** Where the paths begin. */
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

/** Which methods the paths of an OpenAPI document answer to. */
class AllowedMethods {
  readonly #paths: { pattern: RegExp; methods: string[] }[];

  /** `prefix` is what the document's paths are under. */
  constructor({ paths = {} }: { paths?: Record<string, object> }, prefix: string) {
    this.#paths = Object.entries(paths).map(([path, operations]) => ({
      pattern: new RegExp(`^${prefix}${path.replace(/\{[^}]+\}/g, '[^/]+')}$`),
      methods: Object.keys(operations).flatMap((method) =>
        method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()],
      ),
    }));
  }

  /** Empty: there is no such path. */
  of(path: string): string[] {
    return [
      ...new Set(this.#paths.filter(({ pattern }) => pattern.test(path)).flatMap((entry) => entry.methods)),
    ];
  }
}
