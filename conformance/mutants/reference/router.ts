import { listAvailability, listConfigurations } from './catalog.ts';
import { ApiError, notFound } from './errors.ts';
import type { ReferenceRequest, WireAnswer } from './exchange.ts';
import { json } from './exchange.ts';
import {
  createInstance,
  deleteInstance,
  listInstances,
  readInstance,
  startInstance,
  stopInstance,
} from './instances.ts';
import type { ReferenceOptions } from './model.ts';
import { credentialOf, issueToken, unauthorized } from './token.ts';
import {
  attachVolume,
  createVolume,
  deleteVolume,
  detachVolume,
  listLocations,
  readVolume,
} from './volumes.ts';
import type { World } from './world.ts';

type Handler = (world: World, request: ReferenceRequest, id: string) => WireAnswer | Promise<WireAnswer>;

const computeRoutes: Record<string, Handler> = {
  'GET /configurations': listConfigurations,
  'GET /availability': listAvailability,
  'GET /instances': listInstances,
  'POST /instances': createInstance,
  'GET /instances/{instanceId}': readInstance,
  'DELETE /instances/{instanceId}': deleteInstance,
  'POST /instances/{instanceId}/start': startInstance,
  'POST /instances/{instanceId}/stop': stopInstance,
};

const storageRoutes: Record<string, Handler> = {
  'GET /volumes/locations': listLocations,
  'POST /volumes': createVolume,
  'GET /volumes/{volumeId}': readVolume,
  'DELETE /volumes/{volumeId}': deleteVolume,
  'POST /volumes/{volumeId}/attach': attachVolume,
  'POST /volumes/{volumeId}/detach': detachVolume,
};

interface Route {
  name: string;
  method: string;
  path: RegExp;
  handle: Handler;
}

export interface Router {
  /** In O:'s notation, `POST /instances/{instanceId}/stop`; undefined if there is none. */
  routeOf(method: string, path: string): string | undefined;
  answer(world: World, request: ReferenceRequest): Promise<WireAnswer>;
}

/** Checks authorization first, then the path, then the method. */
export function createRouter(options: ReferenceOptions): Router {
  const routes = Object.entries({
    ...computeRoutes,
    ...(options.volumes && storageRoutes),
    ...(options.token !== 'absent' && { 'POST /auth/token': issueToken }),
  }).map(([name, handle]): Route => {
    const [method = '', path = ''] = name.split(' ');
    return { name, method, path: new RegExp(`^${path.replace(/\{\w+\}/, '([^/]+)')}$`), handle };
  });
  // `/volumes/locations` is not a volume: the first of two matching routes wins.
  const find = (method: string, path: string) =>
    routes.find((route) => route.method === method && route.path.test(path));

  async function handle(world: World, request: ReferenceRequest): Promise<WireAnswer> {
    const { method, path } = request;
    if (world.rules.needsCredential(request) && !isAuthorized(world, request)) throw unauthorized();
    const route = find(method, path);
    if (route !== undefined) {
      if (isStranger(world, request)) refuseStranger(route);
      return route.handle(world, request, route.path.exec(path)?.[1] ?? '');
    }
    const methods = routes.filter((other) => other.path.test(path)).map((other) => other.method);
    if (methods.length === 0) throw notFound('resource');
    const message = `Only ${methods.join(', ')} can be used here.`;
    throw new ApiError(405, 'method_not_allowed', message, { allowed: methods });
  }

  return {
    routeOf: (method, path) => find(method, path)?.name,
    async answer(world, request) {
      const answer = await handle(world, request).catch((error: unknown) => toAnswer(world, error));
      return world.rules.answer(request, finish(options, answer));
    },
  };
}

const isStranger = (world: World, request: ReferenceRequest): boolean =>
  world.rules.isStranger(request, credentialOf(world, request));

/** Of another account: it has nothing, and may make nothing. */
function refuseStranger({ name }: Route): void {
  if (name.includes('{')) throw notFound('resource');
  if (name.startsWith('POST /') && name !== 'POST /auth/token')
    throw new ApiError(409, 'quota_exceeded', 'This account may create nothing.');
}

const isAuthorized = (world: World, request: ReferenceRequest): boolean =>
  world.rules.isAuthorized(request, credentialOf(world, request));

function toAnswer({ rules }: World, error: unknown): WireAnswer {
  if (!(error instanceof ApiError)) return json(500, rules.errorBody('internal', String(error), undefined));
  return json(error.status, rules.errorBody(error.code, error.message, error.details));
}

function finish({ extraFields }: ReferenceOptions, answer: WireAnswer): WireAnswer {
  if (answer.json === undefined) return answer;
  const headers = { 'content-type': 'application/json', ...answer.headers };
  return { ...answer, headers, json: extraFields ? withExtras(answer.json) : answer.json };
}

function withExtras(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withExtras);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([name, field]) => [name, withExtras(field)]);
  return { ...Object.fromEntries(fields), x_vendor: { note: 'not in the contract', list: [1, null] } };
}
