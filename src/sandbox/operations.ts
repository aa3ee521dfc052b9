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
  /** Path with its parameters, such as `/v1/instances/{instanceId}`. */
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
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({
      id: operationId,
      method: method.toUpperCase(),
      path: prefix + path,
      pattern: new RegExp(`^${prefix}${path.replace(/\{[^}]+\}/g, '([^/]+)')}$`),
    })),
  );
  // A literal path segment goes before a parameter.
  return routes.sort((a, b) => a.path.split('{').length - b.path.split('{').length);
}

/** Returns the operation of a request, and the id in its path. Undefined if there is no such route. */
export function operationOf(
  provider: string,
  method: string,
  path: string,
): { operation: string; resource: string | undefined } | undefined {
  const [pathname = ''] = path.split('?');
  const asked = method === 'HEAD' ? 'GET' : method;
  for (const { id: operation, method, pattern } of routesOf(provider)) {
    const match = method === asked ? pattern.exec(pathname) : null;
    if (match !== null) return { operation, resource: match[1] && tryDecodeURIComponent(match[1]) };
  }
  return undefined;
}

/** The path below the base URL, such as `/instances/{id}`. */
export function withoutBase(path: string): string {
  return path.replace(/^\/(v1|api)(?=\/)/, '');
}

/** Whether a server has a route like `GET /instances/{id}` or `* /volumes`. */
function hasRoute(server: string, pattern: string): boolean {
  const [method = '', path = ''] = pattern.split(' ');
  const wanted = withoutBase(path).split('/');
  return routesOf(server).some((route) => {
    const parts = withoutBase(route.path).split('/');
    const isMethod = method === '*' || route.method === (method === 'HEAD' ? 'GET' : method);
    const isLike = (part: string, index: number) => part === wanted[index] || part.startsWith('{');
    return isMethod && parts.length === wanted.length && parts.every(isLike);
  });
}

/** Refuses a route that none of the servers has, such as one that is misspelt. @throws {ApiError} */
export function assertRoute(servers: readonly string[], route: string): void {
  if (!route.includes(' ') || servers.some((server) => hasRoute(server, route))) return;
  const [server = ''] = servers;
  const shown = routesOf(server).map(
    ({ method, path }) => `${method} ${withoutBase(path).replace(/\{\w+\}/g, '{id}')}`,
  );
  const nearest = mostLike(route, shown) ?? shown.join(', ');
  throw invalidRequest([{ path: 'route', message: `${server} has no ${route}: the nearest is ${nearest}` }]);
}
