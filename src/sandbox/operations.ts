import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tryDecodeURIComponent } from 'hono/utils/url';
import { packageRoot } from '../config/package-root.ts';
import { invalidRequest } from '../contract/errors.ts';
import { mostLike } from './options.ts';

interface Route {
  /** Its `operationId`. */
  id: string;
  method: string;
  /** `/v1` or `/api`. */
  base: string;
  /** Path below the base, with `{id}` for its parameters. */
  path: string;
  pattern: RegExp;
}

interface Document {
  servers: { url: string }[];
  paths: Record<string, Record<string, { operationId: string }>>;
}

const files = { orchestrator: 'orchestrator.v1.json', marketplace: 'marketplace.json' };
const known = new Map<keyof typeof files, Route[]>();

/** The routes of a provider's API, or of the marketplace's. */
function routesOf(provider: string): Route[] {
  const product = provider === 'marketplace' ? 'marketplace' : 'orchestrator';
  const routes = known.get(product) ?? readRoutes(files[product]);
  known.set(product, routes);
  return routes;
}

function readRoutes(file: string): Route[] {
  const text = readFileSync(join(packageRoot(), 'openapi', file), 'utf8');
  const { servers, paths } = JSON.parse(text) as Document;
  const prefix = (servers[0]?.url ?? '').replace(/\/$/, '');
  const routes = Object.entries(paths).flatMap(([below, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => {
      const whole = prefix + below;
      const path = withoutBase(whole);
      return {
        id: operationId,
        method: method.toUpperCase(),
        base: whole.slice(0, whole.length - path.length),
        path: withIds(path),
        pattern: new RegExp(`^${whole.replace(/\{[^}]+\}/g, '([^/]+)')}$`),
      };
    }),
  );
  // A literal path segment goes before a parameter.
  return routes.sort((a, b) => a.path.split('{').length - b.path.split('{').length);
}

/**
 * Finds what a request asks for: the `operationId`, the route as a text such as `GET /instances/{id}`, and the id in the
 * path. For a path that the API does not have, `route` is the path itself, and the others are undefined.
 */
export function routeOf(provider: string, method: string, path: string) {
  const [pathname = ''] = path.split('?');
  const routed = method === 'HEAD' ? 'GET' : method;
  for (const route of routesOf(provider)) {
    const match = route.method === routed ? route.pattern.exec(pathname) : null;
    if (match === null) continue;
    const resource = match[1] && tryDecodeURIComponent(match[1]);
    return { operation: route.id, route: `${method} ${route.path}`, resource };
  }
  return { operation: undefined, route: `${method} ${withoutBase(pathname)}`, resource: undefined };
}

/** The path below the base URL, such as `/instances/{id}`. */
export function withoutBase(path: string): string {
  return path.replace(/^\/(v1|api)(?=\/)/, '');
}

/** The path with `{id}` for its parameters. */
export function withIds(path: string): string {
  return path.replace(/\{[^}]+\}/g, '{id}');
}

/** Refuses a route that none of the servers has, such as one that is misspelt. @throws {ApiError} */
export function assertRoute(servers: readonly string[], wanted: string): void {
  const [method = '', path = ''] = wanted.split(' ');
  const has = (route: Route): boolean =>
    [route.method, '*'].includes(method === 'HEAD' ? 'GET' : method) &&
    route.pattern.test(`${route.base}${withoutBase(path)}`);
  if (!wanted.includes(' ') || servers.some((server) => routesOf(server).some(has))) return;
  const [server = ''] = servers;
  const shown = routesOf(server).map((route) => `${route.method} ${route.path}`);
  const nearest = mostLike(wanted, shown) ?? shown.join(', ');
  throw invalidRequest([{ path: 'route', message: `${server} has no ${wanted}: the nearest is ${nearest}` }]);
}
