import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tryDecodeURIComponent } from 'hono/utils/url';
import { packageRoot } from '../config/package-root.ts';
import { invalidRequest } from '../contract/errors.ts';
import { editDistance } from './options.ts';

export interface Operation {
  id: string;
  method: string;
  /** Path with its parameters, such as `/v1/instances/{instanceId}`. */
  path: string;
}

interface Route extends Operation {
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
): { operation: Operation; resource: string | undefined } | undefined {
  const [pathname = ''] = path.split('?');
  const asked = method === 'HEAD' ? 'GET' : method;
  for (const operation of routesOf(provider)) {
    const match = operation.method === asked ? operation.pattern.exec(pathname) : null;
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
  const [method = '', path = ''] = route.split(' ');
  const [server = ''] = servers;
  const base = server === 'marketplace' ? '/api' : '/v1';
  const nearest = nearestRoutes(server, method, `${base}${withoutBase(path)}`);
  const shown = nearest.map((one) => `${one.method} ${withoutBase(one.path)}`).join(', ');
  throw invalidRequest([{ path: 'route', message: `${server} has no ${route}: the nearest are ${shown}` }]);
}

function nearestRoutes(provider: string, method: string, path: string): Operation[] {
  const [pathname = ''] = path.split('?');
  const rated = routesOf(provider).map((route) => ({
    route,
    distance: pathDistance(route, pathname) + (route.method === method ? 0 : 1),
  }));
  return rated
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ route: { id, method, path } }) => ({ id, method, path }));
}

/** Returns the edit distance between a route and a path. The route's parameters take their values from the path. */
function pathDistance({ path }: Operation, pathname: string): number {
  const given = pathname.split('/');
  const words = path.split('/').map((word, index) => (word.startsWith('{') ? (given[index] ?? word) : word));
  return editDistance(words.join('/'), pathname);
}
